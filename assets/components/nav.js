// Links to the pages. They carry the whole view, so that one opened in a new tab shows the same texts.

export default function ({ parentElement, data, setTriggerValue }) {
  const nav = parentElement.querySelector(".nav");
  // Figures are coloured by the server, which does not learn of another theme until it is asked for something.
  const dark = isDark(getComputedStyle(nav).color);
  if (dark !== data.dark && nav.told !== dark) {
    nav.told = dark;
    setTriggerValue("theme", dark);
  } else if (dark === data.dark) {
    nav.told = undefined;
  }
  while (nav.children.length < data.pages.length) nav.append(document.createElement("a"));
  data.pages.forEach((page, index) => {
    const link = nav.children[index];
    link.textContent = page.title;
    link.href = page.href;
    if (page.current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      for (const other of nav.children) other.removeAttribute("aria-current");
      link.setAttribute("aria-current", "page");
      setTriggerValue("go", page.name);
    };
  });
}
