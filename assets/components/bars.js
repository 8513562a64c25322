// One card for each mask, with the most probable tokens as bars. A press puts the token into the text.

function buildCard() {
  const card = make("div", "card");
  card.setAttribute("role", "group");
  const head = make("div", "head");
  head.append(make("span", "title"), make("span", "note"));
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

export default inOrder(function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".bars");
  const still = Boolean(data.still);
  resize(root, data.cards.length, buildCard);
  data.cards.forEach((card, index) => {
    const section = root.children[index];
    section.setAttribute("aria-label", `Predictions for ${card.title}`);
    section.querySelector(".title").textContent = card.title;
    section.querySelector(".note").textContent = card.note;
    section.querySelector(".foot").textContent = card.foot;
    const list = section.querySelector(".list");
    resize(list, card.predictions.length, () => buildBar(still));
    card.predictions.forEach((prediction, row) => paintBar(list.children[row], card, prediction, still));
    const [asked, own] = [card.asked ?? [], section.querySelector(".asked")];
    section.querySelector(".ask").hidden = own.hidden = !asked.length;
    resize(own, asked.length, () => buildBar(still));
    asked.forEach((prediction, row) => paintBar(own.children[row], card, prediction, still));
  });
  root.onclick = (event) => {
    const bar = event.target.closest("button.bar");
    if (bar) setTriggerValue("fill", { position: Number(bar.dataset.position), token: Number(bar.dataset.token) });
  };
});
