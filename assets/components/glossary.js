// The list of terms by letter, with a field that narrows it as the visitor types; the server is not asked.

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".glossary");
  const [field, letters] = [root.querySelector("input"), root.querySelector(".letters")];
  window.bertTerms = data.terms; // for the search, see nav.js
  const entries = [];
  const sections = new Map();
  letters.replaceChildren();
  for (const term of data.terms) {
    const letter = term.name[0].toUpperCase();
    if (!sections.has(letter)) {
      const section = make("section", "letter");
      section.append(make("h2", "", letter), make("dl", ""));
      letters.append(section);
      sections.set(letter, section);
    }
    const entry = make("div", "entry");
    const name = make("dt", "", term.name);
    if (term.others.length) name.append(make("span", "others", ` · ${term.others.join(", ")}`));
    const meaning = make("dd", "", `${term.text} `);
    const link = make("a", "", `${term.title} →`);
    link.href = term.href;
    link.setAttribute("aria-label", `${term.name}: see ${term.title}`);
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      send("go", term.page);
    };
    meaning.append(link);
    entry.append(name, meaning);
    sections.get(letter).lastChild.append(entry);
    entries.push([entry, `${term.name} ${term.others.join(" ")} ${term.text}`.toLowerCase()]);
  }
  field.oninput = narrow;
  narrow();

  function narrow() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [entry, text] of entries) {
      entry.hidden = !words.every((word) => text.includes(word));
      found += !entry.hidden;
    }
    for (const section of sections.values()) section.hidden = !section.querySelector(".entry:not([hidden])");
    root.querySelector(".count").textContent = found ? `${found} term${found === 1 ? "" : "s"}` : "No term has these words.";
  }
});
