// One card for each mask, with the most probable tokens as bars. A press puts the token into the text. Linked,
// only the card of the mask pressed last is open; the others show their first prediction, and a press opens them.

function buildCard() {
  const card = make("div", "card");
  card.setAttribute("role", "group");
  const head = make("div", "head");
  head.append(make("span", "title"), make("span", "first"), make("span", "note"));
  card.append(head, make("ol", "list"), make("p", "foot"), make("p", "ask", "Asked about"), make("ul", "list asked"));
  return card;
}

function buildBar(still) {
  const item = document.createElement("li");
  const bar = make(still ? "div" : "button", `bar${still ? " still" : ""}`);
  if (!still) bar.type = "button";
  bar.append(make("span", "word"), make("span", "share"));
  item.append(bar);
  return item;
}

function paintBar(item, card, prediction, still) {
  const bar = item.firstElementChild;
  bar.classList.toggle("right", prediction.right);
  bar.classList.toggle("alone", Boolean(prediction.alone));
  bar.style.setProperty("--share", `${Math.max(100 * prediction.p, 0.6)}%`);
  const word = bar.querySelector(".word");
  word.textContent = prediction.text;
  if (prediction.rank) word.append(make("small", "", `rank ${prediction.rank}`));
  const before = prediction.was;
  bar.classList.toggle("changed", before !== undefined);
  bar.style.setProperty("--was", `${100 * (before ?? 0)}%`);
  const said = before === undefined ? percent(prediction.p) : `${percent(before)} → ${percent(prediction.p)}`;
  bar.querySelector(".share").textContent = said;
  const alone = prediction.alone ? ", not predicted by the other model" : "";
  bar.title = before === undefined ? `${prediction.text}: ${(100 * prediction.p).toPrecision(4)}%${alone}` : `${prediction.text}: ${said}`;
  if (still) return;
  bar.dataset.position = card.position;
  bar.dataset.token = prediction.id;
  const rank = prediction.rank ? `, rank ${prediction.rank}` : "";
  bar.setAttribute("aria-label", `Fill in ${prediction.text}, ${percent(prediction.p)}${rank}`);
}

// Whether a card's mask stands at the place of a chip.
function isAt(linked, card, chip) {
  return chipOf(linked, card.position) === chip || ownOf(linked, chip) === card.position;
}

// Opens one card and folds the others; cards that are not linked are all open.
function fold(root, { cards, linked }, position) {
  [...root.children].forEach((section, index) => {
    const card = cards[index];
    const folded = Boolean(linked) && card.position !== position;
    section.classList.toggle("folded", folded);
    const head = section.firstElementChild;
    section.querySelector(".first").textContent = folded ? card.predictions[0]?.text ?? "" : "";
    section.querySelector(".note").textContent = folded ? percent(card.predictions[0]?.p ?? 0) : card.note;
    head.onclick = folded ? () => open(root, { cards, linked }, card.position) : null;
    if (folded) {
      head.setAttribute("role", "button");
      head.setAttribute("aria-expanded", "false");
      head.tabIndex = 0;
      head.onkeydown = (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        head.click();
        section.querySelector("button.bar")?.focus(); // the head of an open card takes no focus
      };
    } else {
      for (const name of ["role", "aria-expanded", "tabindex"]) head.removeAttribute(name);
      head.onkeydown = null;
    }
  });
}

function open(root, data, position) {
  window.bertMask = chipOf(data.linked, position);
  fold(root, data, position);
}

// The last words before a mask and the next after it, as the chips of the page show them; null if they do not know it.
function around(card, linked) {
  const chips = window.bertChips ?? [];
  const place = chipOf(linked, card.position);
  const mask = chips.find((chip) => chip.position === place);
  if (!mask || !(mask.masked || mask.kind === "typed") || (mask.was || "[MASK]") !== card.title) return null;
  const side = chips.filter((chip) => chip.side === mask.side && chip.kind !== "special");
  const at = side.indexOf(mask);
  const written = (part) => part.map((chip) => {
    const text = chip.masked || chip.kind === "typed" ? "[MASK]" : chip.text;
    return text.startsWith("##") ? text.slice(2) : ` ${text}`;
  }).join("").replace(/ (?=[.,;:!?])/g, "");
  const [first, last] = [Math.max(0, at - 5), at + 5];
  return [`${first ? "…" : ""}${written(side.slice(first, at))} `.trimStart(), `${written(side.slice(at + 1, last))}${last < side.length ? " …" : ""}`];
}

// While a bar has the pointer or the focus, the last line of its card is the text that a press would write.
function foresee(root, { cards, linked }, element) {
  const bar = element?.closest?.("button.bar");
  [...root.children].forEach((section, index) => {
    const foot = section.querySelector(".foot");
    const words = bar && section.contains(bar) ? around(cards[index], linked) : null;
    if (!words && !foot.classList.contains("foreseen")) return;
    if (words && !foot.classList.contains("foreseen")) foot.style.minHeight = `${foot.offsetHeight}px`;
    foot.classList.toggle("foreseen", Boolean(words));
    if (words) foot.replaceChildren(words[0], make("b", "", bar.querySelector(".word").firstChild.textContent), words[1]);
    else { foot.textContent = cards[index].foot; foot.style.minHeight = ""; }
  });
}

// The card under the pointer or the focus is the token that the other components show too.
function link(root, { cards, linked }) {
  const tell = (element) => {
    const index = [...root.children].indexOf(element?.closest?.(".card"));
    tellToken(index < 0 ? null : chipOf(linked, cards[index].position));
    foresee(root, { cards, linked }, element);
  };
  root.onpointerover = (event) => { if (event.pointerType !== "touch") tell(event.target); };
  root.onpointerleave = () => tell(null);
  onFocus(root, tell);
  return onToken((chip) => {
    cards.forEach((card, index) => root.children[index]?.classList.toggle("lit", chip !== null && isAt(linked, card, chip)));
  });
}

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".bars");
  const still = Boolean(data.still);
  root.classList.toggle("linked", Boolean(data.linked));
  resize(root, data.cards.length, buildCard);
  data.cards.forEach((card, index) => {
    const section = root.children[index];
    section.setAttribute("aria-label", `Predictions for ${card.title}`);
    section.querySelector(".title").textContent = card.title;
    section.querySelector(".note").textContent = card.note;
    const foot = section.querySelector(".foot");
    foot.textContent = card.foot;
    foot.classList.remove("foreseen");
    foot.style.minHeight = "";
    const list = section.querySelector(".list");
    resize(list, card.predictions.length, () => buildBar(still));
    card.predictions.forEach((prediction, row) => paintBar(list.children[row], card, prediction, still));
    const [asked, own] = [card.asked ?? [], section.querySelector(".asked")];
    section.querySelector(".ask").hidden = own.hidden = !asked.length;
    resize(own, asked.length, () => buildBar(still));
    asked.forEach((prediction, row) => paintBar(own.children[row], card, prediction, still));
  });
  fold(root, data, (data.cards.find((card) => isAt(data.linked, card, window.bertMask)) ?? data.cards[0])?.position);
  root.onclick = (event) => {
    const bar = event.target.closest("button.bar");
    if (bar) send("fill", { position: Number(bar.dataset.position), token: Number(bar.dataset.token) });
  };
  return data.linked ? link(root, data) : undefined;
});
