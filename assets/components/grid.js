// Small maps of every head, drawn on one canvas from one array of bytes.

const LABEL = 22; // room for the numbers of layers and heads, in CSS pixels

function colours(ramp) {
  const stops = ramp.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const table = new Uint32Array(256);
  for (let value = 0; value < 256; value++) {
    const at = (value / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(stops[low][c] + (at - low) * (stops[low + 1][c] - stops[low][c])));
    table[value] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
}

// Every tile once at its own size; the canvas scales them, so that a resize costs no decoding.
function mosaic(data, bytes, table) {
  const { layers, heads, rows, columns } = data;
  const sheet = document.createElement("canvas");
  sheet.width = heads * columns;
  sheet.height = layers * rows;
  const image = new ImageData(sheet.width, sheet.height);
  const pixels = new Uint32Array(image.data.buffer);
  let at = 0;
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      for (let row = 0; row < rows; row++) {
        let pixel = (layer * rows + row) * sheet.width + head * columns;
        for (let column = 0; column < columns; column++) pixels[pixel++] = table[bytes[at++]];
      }
    }
  }
  sheet.getContext("2d").putImageData(image, 0, 0);
  return sheet;
}

function measure(state) {
  const width = state.board.clientWidth || 600;
  const cell = (width - LABEL) / state.data.heads;
  // Tiles as wide as the page allows, yet no taller than they are wide and never a poster.
  const tall = Math.max(14, Math.min(cell, 52));
  return { width, cell, tall, height: LABEL + tall * state.data.layers };
}

function draw(state) {
  const { data, board, canvas } = state;
  const size = measure(state);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(size.width * ratio);
  canvas.height = Math.round(size.height * ratio);
  canvas.style.height = `${size.height}px`;
  const style = getComputedStyle(board);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `11px ${style.fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const accent = style.getPropertyValue("--st-primary-color").trim() || "#2b59c3";
  const gap = size.cell > 30 ? 3 : 1.5;
  pen.imageSmoothingEnabled = false;
  for (let head = 0; head < data.heads; head++) number(pen, style, head, data.head, LABEL + (head + .5) * size.cell, LABEL / 2);
  for (let layer = 0; layer < data.layers; layer++) {
    number(pen, style, layer, data.layer, LABEL / 2 - 2, LABEL + (layer + .5) * size.tall);
    for (let head = 0; head < data.heads; head++) {
      const x = LABEL + head * size.cell + gap / 2;
      const y = LABEL + layer * size.tall + gap / 2;
      const box = [x, y, size.cell - gap, size.tall - gap];
      pen.drawImage(state.sheet, head * data.columns, layer * data.rows, data.columns, data.rows, ...box);
      frame(pen, state, layer, head, box, accent, style.color);
    }
  }
}

function number(pen, style, index, open, x, y) {
  pen.fillStyle = style.color;
  pen.globalAlpha = index === open ? 1 : .6;
  pen.fillText(String(index + 1), x, y);
  pen.globalAlpha = 1;
}

function frame(pen, state, layer, head, [x, y, width, height], accent, ink) {
  const open = layer === state.data.layer && head === state.data.head;
  const near = state.near && layer === state.near.layer && head === state.near.head;
  pen.lineWidth = open ? 2.5 : near ? 1.5 : .5;
  pen.strokeStyle = open ? accent : ink;
  pen.globalAlpha = open || near ? 1 : .28;
  pen.strokeRect(x - .5, y - .5, width + 1, height + 1);
  pen.globalAlpha = 1;
}

function under(state, event) {
  const size = measure(state);
  const box = state.canvas.getBoundingClientRect();
  const head = Math.floor((event.clientX - box.left - LABEL) / size.cell);
  const layer = Math.floor((event.clientY - box.top - LABEL) / size.tall);
  const inside = head >= 0 && head < state.data.heads && layer >= 0 && layer < state.data.layers;
  return inside ? { layer, head } : null;
}

function point(state, near) {
  state.near = near;
  const { tip } = state;
  tip.hidden = !near;
  if (near) {
    const size = measure(state);
    tip.textContent = `Layer ${near.layer + 1}, head ${near.head + 1}`;
    const left = LABEL + near.head * size.cell;
    tip.style.left = `${Math.min(left, size.width - tip.offsetWidth - 2)}px`;
    tip.style.top = `${Math.max(LABEL + near.layer * size.tall - 26, 0)}px`;
  }
  draw(state);
}

function onKey(state, event) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const { layers, heads } = state.data;
  const here = state.near ?? { layer: state.data.layer, head: state.data.head };
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open(state, here);
  } else if (event.key in steps) {
    event.preventDefault();
    const [down, right] = steps[event.key];
    point(state, { layer: Math.min(Math.max(here.layer + down, 0), layers - 1),
                   head: Math.min(Math.max(here.head + right, 0), heads - 1) });
    state.say.textContent = state.tip.textContent;
  }
}

function open(state, place) {
  // The frame moves at once; what is behind it follows from the server.
  state.data = { ...state.data, ...place };
  draw(state);
  state.send("open", place);
}

export default function ({ parentElement, data, setTriggerValue }) {
  const board = parentElement.querySelector(".board");
  const state = board.state ?? (board.state = {});
  Object.assign(state, { board, data, send: setTriggerValue, canvas: board.querySelector("canvas"),
    tip: board.querySelector(".tip"), say: parentElement.querySelector(".say") });
  const source = data.bytes + data.ramp.join();
  if (state.source !== source) {
    state.source = source;
    state.sheet = mosaic(data, decode(data.bytes), colours(data.ramp));
  }
  board.onpointermove = (event) => {
    const near = event.pointerType === "touch" ? null : under(state, event);
    if (near?.layer !== state.near?.layer || near?.head !== state.near?.head) point(state, near);
  };
  board.onpointerleave = () => point(state, null);
  board.onclick = (event) => {
    const place = under(state, event);
    if (place) open(state, place);
  };
  board.onkeydown = (event) => onKey(state, event);
  parentElement.querySelector(".hint").textContent = "Layers downwards, heads across; each map scaled to its own strongest.";
  parentElement.querySelector(".save").onclick = () => {
    state.canvas.toBlob((picture) => download(picture, "all-heads.png"));
  };
  board.onblur = () => point(state, null);
  draw(state);
  return onWidth(board, () => draw(state));
}
