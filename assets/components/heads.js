// The chosen heads, each with its colour. A press removes one. Sends the chosen heads to the component of the small maps.

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".heads");
  tellHeads({ heads: data.heads, several: data.several });
  const shown = data.several ? data.heads : [];
  while (root.children.length < shown.length) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(document.createElement("span"), document.createElement("span"));
    button.lastChild.className = "away";
    button.lastChild.textContent = "×";
    root.append(button);
  }
  while (root.children.length > shown.length) root.lastElementChild.remove();
  shown.forEach((head, index) => {
    const button = root.children[index];
    const name = `Layer ${head.layer + 1}, head ${head.head + 1}`;
    button.className = `head${shown.length === 1 ? " only" : ""}`;
    button.style.setProperty("--colour", head.colour);
    button.firstChild.textContent = name;
    button.setAttribute("aria-label", shown.length === 1 ? name : `${name}: remove it`);
    button.disabled = shown.length === 1;
    button.onclick = () => send("drop", { layer: head.layer, head: head.head });
  });
});
