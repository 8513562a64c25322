// Buttons that save a figure or a drawing. The server sends the figure, and at the first press Plotly too, when a button is
// pressed. A drawing of the page is told to save itself.

const WIDTH = 1000; // pixels of the picture, if the figure has no width

async function save({ library, figure, format, name, card }) {
  if (!window.Plotly) {
    const script = document.createElement("script");
    script.textContent = library;
    document.head.append(script);
  }
  const { data, layout } = JSON.parse(figure);
  const url = await window.Plotly.toImage({ data, layout }, { format, scale: format === "png" && !card ? 2 : 1,
    width: layout.width ?? WIDTH, height: layout.height ?? WIDTH / 2 });
  download(await (await fetch(url)).blob(), `${name}.${format}`);
}

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".picture");
  root.setAttribute("aria-label", `${data.title} as a picture`);
  for (const button of root.children) {
    button.textContent = data.card ? data.title : `${data.title} (${button.value.toUpperCase()})`;
    button.title = data.card;
    button.hidden = !data.formats.includes(button.value);
    button.classList.toggle("card", Boolean(data.card));
    button.disabled = false;
    button.onclick = data.drawing ? () => tellSave(data.name, button.value) : (event) => {
      const format = data.card && event.shiftKey ? "svg" : button.value;
      button.disabled = send("ask", { format, library: !window.Plotly });
    };
  }
  // When drawn again, the data still have the last requested figure: do not save it twice.
  const saved = (window.bertPictures ??= new Set());
  if (!data.figure || saved.has(data.number)) return;
  saved.add(data.number);
  save(data);
});
