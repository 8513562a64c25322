// Links to the pages, by section, and a search among them and the terms of the glossary. A link contains the whole view,
// so that a page in a new tab has the same texts. The view stands in the address bar: the server sends only what another
// page has in its link instead, so that a press that masks a word does not send all links anew.

const MOST_TERMS = 3; // terms of the glossary below the pages that a search finds
const FILLERS = new Set("a an and are by do does how in is it me my of or the this to vs versus what where which with".split(" "));

export default inOrder(function ({ parentElement, data, send }) {
  const [search, sections, results, none] = [".search", ".sections", ".results", ".none"].map((name) =>
    parentElement.querySelector(name));
  // The server colours the figures. It does not learn of a change of the theme before the next run: start one.
  const dark = isDark(getComputedStyle(search).color);
  if (dark !== data.dark && sections.told !== dark) {
    sections.told = dark;
    send("theme", dark);
  } else if (dark === data.dark) {
    sections.told = undefined;
  }

  fillSections();
  search.oninput = find;
  search.onkeydown = (event) => {
    const first = results.querySelector("a");
    if (event.key === "Escape") leave();
    else if (event.key === "Enter" && first) open(first.page);
    else if (event.key === "ArrowDown" && first) first.focus();
    else return;
    event.preventDefault();
  };
  results.onkeydown = (event) => {
    const { activeElement } = results.getRootNode();
    const next = { ArrowDown: activeElement.nextElementSibling, ArrowUp: activeElement.previousElementSibling ?? search };
    if (event.key === "Escape") { leave(); search.focus(); }
    else if (event.key in next) next[event.key]?.focus();
    else return;
    event.preventDefault();
  };
  find();
  const listening = new AbortController();
  document.addEventListener("keydown", slash, { signal: listening.signal });
  // For some seconds after a press the server takes the address of before for a late message: back is told to it.
  // An address without a view is the first of a visit, and gets one at once: to stop there would never let go back beyond.
  window.addEventListener("popstate", () => {
    if (location.search) send("back", location.search); else history.back();
  }, { signal: listening.signal });
  keepScroll();
  const listed = new MutationObserver(greyMissing);
  listed.observe(document.body, { childList: true, subtree: true });
  for (const links of [sections, results]) {
    for (const act of ["pointerover", "focusin"]) links.addEventListener(act, follow, { signal: listening.signal });
  }
  return () => { listening.abort(); listed.disconnect(); };

  // A link that is pointed at or focused follows the address bar.
  function follow(event) {
    const link = event.target.closest("a");
    if (link) link.href = address(link.page);
  }

  function address(page) {
    const params = new URLSearchParams(location.search);
    const here = data.sections.flatMap((section) => section.pages).find((one) => one.name === data.current);
    for (const name of Object.keys(here.params)) params.delete(name);
    for (const [name, value] of Object.entries(page.params)) params.set(name, value);
    return `?${params}`;
  }

  // The choice of the model also lists models that are not installed.
  function greyMissing(changes) {
    if (!changes.some((change) => change.addedNodes.length)) return;
    for (const option of document.querySelectorAll('[role="option"]')) {
      option.toggleAttribute("data-missing", option.textContent.endsWith(" · get it"));
    }
  }

  // A page opens where the visitor left it, and at its top if the visitor has not seen it. It is drawn part by part:
  // wait until it is long enough, or the visitor acts. A focus that is lost meanwhile goes to the title.
  function keepScroll() {
    const main = document.querySelector('[data-testid="stMain"]');
    if (!main) return;
    const places = (window.bertScroll ??= new Map());
    if (sections.page !== data.current) {
      const isFirst = sections.page === undefined; // the browser has just loaded the page: it is at its top
      sections.page = data.current;
      sections.left = false;
      const wanted = places.get(data.current) ?? 0;
      const waiting = new AbortController();
      sections.waiting?.abort();
      sections.waiting = waiting;
      for (const act of ["wheel", "touchstart", "keydown", "pointerdown"]) {
        window.addEventListener(act, () => waiting.abort(), { signal: waiting.signal, capture: true });
      }
      const end = performance.now() + 5000;
      const restore = () => {
        if (waiting.signal.aborted) return;
        main.scrollTop = wanted;
        keepFocus();
        // Streamlit goes to the top when it draws another page: hold the place until the page is drawn.
        const drawn = document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";
        if (performance.now() > end || (drawn && Math.abs(main.scrollTop - wanted) < 2)) waiting.abort();
        else setTimeout(restore, 60);
      };
      if (isFirst && !wanted) waiting.abort(); else restore();
    }
    main.addEventListener("scroll", () => {
      if (sections.waiting.signal.aborted && !sections.left) places.set(data.current, main.scrollTop);
    }, { signal: listening.signal, passive: true });
  }

  // The focus was in the search, or in what is no longer drawn: without it a screen reader says nothing of the new page,
  // and the Tab key begins anew in the sidebar. It goes on at the page's title.
  function keepFocus() {
    const title = document.querySelector('[data-testid="stMain"] h1');
    if (!title || document.activeElement !== document.body) return;
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
  }

  function fillSections() {
    data.sections.forEach((section, index) => {
      const part = sections.children[index] ?? sections.appendChild(newSection());
      part.querySelector("summary").textContent = section.title;
      // A section that the visitor opens or closes stays so until the page changes.
      const here = section.pages.some((page) => page.name === data.current);
      const isNew = part.shown !== data.current;
      if (isNew) part.open = here;
      part.shown = data.current;
      part.classList.toggle("here", here);
      const links = part.querySelectorAll("a");
      section.pages.forEach((page, place) => aim(links[place] ?? part.appendChild(document.createElement("a")), page));
      if (isNew && here) requestAnimationFrame(() => bringIntoView(part));
    });
  }

  // In a low window the section of the open page would lie below the sidebar's end.
  function bringIntoView(part) {
    const sidebar = document.querySelector('[data-testid="stSidebarContent"]');
    if (!sidebar) return;
    const below = part.getBoundingClientRect().bottom + 16 - sidebar.getBoundingClientRect().bottom;
    if (below > 0) sidebar.scrollTop += below;
  }

  function newSection() {
    const part = document.createElement("details");
    part.append(document.createElement("summary"));
    return part;
  }

  function aim(link, page) {
    link.page = page;
    link.textContent = page.title;
    link.title = page.question;
    link.href = address(page);
    if (page.name === data.current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      open(page);
    };
  }

  function open(page) {
    leave();
    search.blur();
    sections.left = true; // what scrolls from now on is not the visitor
    send("go", page.name);
    // On a telephone the sidebar lies over the page: it goes, and with it the link that has the focus.
    if (!matchMedia("(max-width: 768px)").matches) return;
    button("stSidebarCollapseButton")?.click();
    document.activeElement.blur();
  }

  function leave() {
    search.value = "";
    find();
  }

  // Every word of the search must begin a word of the page's title, question, section or terms; titles come first. Words
  // without a meaning of their own do not count. A page whose whole title or question is typed comes before all others.
  function find() {
    const typed = words(search.value);
    const asked = typed.filter((word) => !FILLERS.has(word) || typed.length === 1);
    const isTyped = (text) => words(text).join(" ") === typed.join(" ");
    const ranked = [];
    if (asked.length) {
      for (const section of data.sections) {
        for (const page of section.pages) {
          const places = [page.title, page.terms, page.question, section.title].map(words);
          const ranks = asked.map((start) => places.findIndex((found) => found.some((word) => word.startsWith(start))));
          if ([page.title, page.question].some(isTyped)) ranked.push({ page, rank: -1 });
          else if (!ranks.includes(-1)) ranked.push({ page, rank: Math.max(...ranks) });
        }
      }
    }
    ranked.sort((one, other) => one.rank - other.rank);
    results.replaceChildren(...ranked.map(({ page }) => {
      const link = document.createElement("a");
      aim(link, page);
      link.append(make("small", "", page.question));
      return link;
    }), ...meanings(asked));
    results.hidden = !asked.length;
    sections.hidden = !!asked.length;
    none.textContent = asked.length && !results.children.length ? `No page or term matches “${search.value.trim()}”.` : "";
  }

  // Links to the glossary for the terms whose names begin with the typed words; each tells its meaning at once. The page
  // has the terms: see terms.js and glossary.js.
  function meanings(asked) {
    if (!asked.length) return [];
    const glossary = data.sections.flatMap((section) => section.pages).find((page) => page.name === "glossary");
    const found = (window.bertTerms ?? []).filter(({ name, others }) => {
      const named = [name, ...others].flatMap(words);
      return asked.every((start) => named.some((word) => word.startsWith(start)));
    });
    return found.slice(0, MOST_TERMS).map(({ name, text }) => {
      const link = make("a", "term");
      aim(link, glossary);
      link.removeAttribute("aria-current");
      link.replaceChildren(make("span", "", name), make("small", "", text));
      return link;
    });
  }

  function words(text) {
    return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  }

  function slash(event) {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    const [at] = event.composedPath();
    if (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName)) return;
    event.preventDefault();
    button("stExpandSidebarButton")?.click(); // which is there while the sidebar is folded away
    search.focus();
  }

  function button(name) {
    const place = document.querySelector(`[data-testid="${name}"]`);
    return place?.matches("button") ? place : place?.querySelector("button");
  }
});
