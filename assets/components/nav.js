// Links to the pages. They contain the whole view, so that a page in a new tab has the same texts.

export default inOrder(function ({ parentElement, data, setTriggerValue }) {
  const nav = parentElement.querySelector(".nav");
  // The server colours the figures. It does not learn of a change of the theme before the next run: start one.
  const dark = isDark(getComputedStyle(nav).color);
  if (dark !== data.dark && nav.told !== dark) {
    nav.told = dark;
    setTriggerValue("theme", dark);
  } else if (dark === data.dark) {
    nav.told = undefined;
  }
  fill(nav, data.groups);
  fill(parentElement.querySelector(".within"), data.pages);

  function fill(row, pages) {
    while (row.children.length < pages.length) row.append(document.createElement("a"));
    while (row.children.length > pages.length) row.lastChild.remove();
    pages.forEach((page, index) => {
      const link = row.children[index];
      link.textContent = page.title;
      link.title = page.hint;
      link.href = page.href;
      mark(link, page.current);
      // On a narrow screen the row is wider than the page: scroll to the current link.
      if (page.current) row.scrollLeft = Math.max(0, link.offsetLeft + link.offsetWidth / 2 - row.clientWidth / 2);
      link.onclick = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        for (const other of row.children) mark(other, other === link);
        setTriggerValue("go", page.name);
      };
    });
  }

  function mark(link, current) {
    if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
});
