// The terms of the glossary in the page's own sentences: the first use of each is underlined by the CSS Custom Highlight
// API, which leaves the document, what is copied and what is read aloud as they are. Pointing at one tells what it means;
// for the keyboard the terms stand as buttons at the end of the page.

const TEXTS = "[data-testid=stMarkdownContainer] :is(p, li), [data-testid=stCaptionContainer] p";
const NOT_IN = "a, button, label, code, [role=alert], [data-testid=stExpander] summary, [data-testid=stSidebar]";
const MOST = 8; // terms that are marked on one page

export default inOrder(function ({ parentElement, data }) {
  const root = parentElement.querySelector(".terms");
  const main = root.getRootNode().host?.closest("[data-testid=stMain]") ?? document.querySelector("[data-testid=stMain]");
  window.bertTerms = data.terms; // for the search, see nav.js
  if (!main || !globalThis.Highlight) return;
  const [list, tip] = [root.querySelector(".list"), root.querySelector(".tip")];
  const meanings = new Map(data.terms.flatMap((term) => [term.name, ...term.others].map((name) => [name.toLowerCase(), term])));
  const names = [...meanings.keys()].sort((one, other) => other.length - one.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${names.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  let [marks, timer, shown] = [[], undefined, undefined];

  function mark() {
    const found = new Map();
    for (const text of main.querySelectorAll(TEXTS)) {
      if (found.size === MOST) break;
      if (text.closest(NOT_IN)) continue;
      const nodes = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
      while (nodes.nextNode() && found.size < MOST) {
        const node = nodes.currentNode;
        if (node.parentElement.closest(NOT_IN)) continue;
        for (const match of node.data.matchAll(pattern)) {
          const term = meanings.get(match[0].toLowerCase());
          if (found.has(term.name) || found.size === MOST) continue;
          const range = new Range();
          range.setStart(node, match.index);
          range.setEnd(node, match.index + match[0].length);
          found.set(term.name, { term, range });
        }
      }
    }
    marks = [...found.values()];
    // In high contrast the browser gives every highlight the colours of selected text.
    const ranges = matchMedia("(forced-colors: active)").matches ? [] : marks.map(({ range }) => range);
    CSS.highlights.set("glossary-term", new Highlight(...ranges));
    const said = marks.map(({ term }) => term.name).join("\n");
    if (root.said === said) return;
    root.said = said;
    root.hidden = !marks.length;
    list.replaceChildren(...marks.map(({ term }) => {
      const button = make("button", "", term.name);
      button.type = "button";
      button.setAttribute("aria-description", term.text);
      button.onfocus = button.onpointerenter = () => show(term, button.getBoundingClientRect());
      button.onblur = button.onpointerleave = hide;
      return button;
    }));
  }

  function show(term, box) {
    if (shown === term) return;
    shown = term;
    tip.firstChild.textContent = term.name;
    tip.lastChild.textContent = term.text;
    tip.showPopover();
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
    tip.style.top = `${box.bottom + height + 12 < innerHeight ? box.bottom + 6 : box.top - height - 6}px`;
  }

  function hide() {
    if (!shown) return;
    shown = undefined;
    tip.hidePopover();
  }

  // A button that the keyboard reaches is scrolled into view: its meaning comes along.
  function scrolled() {
    const term = shown;
    hide();
    const focused = root.getRootNode().activeElement;
    if (term && list.contains(focused)) show(term, focused.getBoundingClientRect());
  }

  function point(event) {
    if (!event.target.closest?.(TEXTS)) return root.contains(event.composedPath()[0]) ? undefined : hide();
    for (const { term, range } of marks) {
      for (const box of range.getClientRects()) {
        const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
        if (inside) return show(term, box);
      }
    }
    hide();
  }

  function key(event) {
    if (event.key === "Escape") hide();
  }

  const watch = new MutationObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(mark, 250);
  });
  watch.observe(main, { childList: true, characterData: true, subtree: true });
  main.addEventListener("pointermove", point);
  main.addEventListener("pointerdown", point);
  main.addEventListener("scroll", scrolled, { passive: true });
  window.addEventListener("keydown", key);
  mark();
  return () => {
    clearTimeout(timer);
    watch.disconnect();
    main.removeEventListener("pointermove", point);
    main.removeEventListener("pointerdown", point);
    main.removeEventListener("scroll", scrolled);
    window.removeEventListener("keydown", key);
    hide();
    CSS.highlights.delete("glossary-term");
  };
});
