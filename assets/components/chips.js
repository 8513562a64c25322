// The tokens of both texts as chips. A press masks or unmasks one. All user text is set by textContent.

function label(chip, masked) {
  // A masked word is struck through in its own place, so that a press moves no other chip.
  if (masked) return [chip.was ? make("span", "was", chip.was) : make("span", "mask", "[MASK]")];
  if (chip.kind === "piece" && chip.text.startsWith("##")) {
    return [make("span", "hash", "##"), make("span", "", chip.text.slice(2))];
  }
  return [make("span", "", chip.text)];
}

function describe(chip) {
  if (chip.kind === "special") return `${chip.text}, special token, position ${chip.position}`;
  if (chip.kind === "typed") return `Typed mask, position ${chip.position}`;
  const what = chip.kind === "piece" ? "word piece" : "word";
  const joins = chip.text.startsWith("##") && !chip.masked ? "; ## says that it goes on the word before it" : "";
  return `${chip.masked ? "Masked " : ""}${what} ${chip.was}, position ${chip.position}${joins}`;
}

function paint(element, chip, next) {
  const pressable = Boolean(chip.spot);
  const joins = next && next.kind === "piece" && next.side === chip.side && chip.kind !== "special";
  element.className = ["chip", chip.kind, chip.kind === "piece" ? "joined" : "", joins ? "joins" : "", chip.differs ? "differs" : ""].join(" ");
  element.replaceChildren(...label(chip, chip.masked || chip.kind === "typed"));
  element.title = describe(chip);
  element.dataset.position = chip.position;
  if (pressable) {
    element.setAttribute("aria-pressed", String(chip.masked));
    element.setAttribute("aria-label", describe(chip));
    element.dataset.spot = chip.spot;
  }
}

function fill(line, chips, all) {
  chips.forEach((chip, index) => {
    const tag = chip.spot ? "BUTTON" : "SPAN";
    const signature = JSON.stringify([chip, all[chip.position + 1]?.kind]);
    let element = line.children[index];
    if (!element || element.tagName !== tag) {
      const fresh = document.createElement(tag.toLowerCase());
      if (tag === "BUTTON") fresh.type = "button";
      if (element) element.replaceWith(fresh); else line.append(fresh);
      element = fresh;
    }
    if (element.dataset.signature !== signature) {
      paint(element, chip, all[chip.position + 1]);
      element.dataset.signature = signature;
    }
  });
  while (line.children.length > chips.length) line.lastElementChild.remove();
}

// The chip under the pointer or the focus is the token that the other components show too.
function link(root) {
  const tell = (element) => {
    const chip = element?.closest?.(".chip");
    tellToken(chip ? Number(chip.dataset.position) : null);
  };
  root.onpointerover = (event) => { if (event.pointerType !== "touch") tell(event.target); };
  root.onpointerleave = () => tellToken(null);
  onFocus(root, tell);
  return onToken((position) => {
    for (const chip of root.querySelectorAll(".chip")) chip.classList.toggle("lit", Number(chip.dataset.position) === position);
  });
}

function focusable(root) {
  return [...root.querySelectorAll("button.chip")];
}

function rove(root, target) {
  for (const button of focusable(root)) button.tabIndex = button === target ? 0 : -1;
}

function onKey(root, event) {
  const buttons = focusable(root);
  const here = buttons.indexOf(event.target);
  const step = wordStep(event, buttons.length);
  if (step === undefined) return;
  event.preventDefault();
  const target = buttons[Math.max(0, Math.min(buttons.length - 1, here + step))];
  if (target) { rove(root, target); target.focus(); }
}

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".chips");
  for (const side of ["a", "b"]) {
    const chips = data.chips.filter((chip) => chip.side === side);
    const row = root.querySelector(`[data-side="${side}"]`);
    row.hidden = chips.length === 0;
    const line = row.querySelector(".line");
    line.dir = data.directions[side];
    fill(line, chips, data.chips);
  }
  drawControls(parentElement.querySelector(".controls"), data.controls, send);
  if (data.linked) window.bertChips = data.chips;
  const buttons = focusable(root);
  // One chip is reached with the Tab key; new chips do not add another.
  rove(root, buttons.find((button) => button.getAttribute("tabindex") === "0") ?? buttons[0]);

  root.onclick = (event) => {
    const button = event.target.closest("button.chip");
    if (!button) return;
    rove(root, button);
    const word = button.dataset.spot;
    if (!send("toggle", word)) return;
    // Show the change at once; the server's data follow and replace it.
    const pressed = button.getAttribute("aria-pressed") === "true";
    for (const one of buttons) {
      if (one.dataset.spot !== word) continue;
      const chip = data.chips[Number(one.dataset.position)];
      paint(one, { ...chip, masked: !pressed }, data.chips[chip.position + 1]);
      delete one.dataset.signature;
    }
    if (!pressed) window.bertMask = Number(button.dataset.position);
  };
  root.onkeydown = (event) => onKey(root, event);
  return data.linked ? link(root) : undefined;
});
