// A tile for every head on one canvas, from one array of bytes: its map, its lines, or a number.

const LABEL = 22; // room for the numbers of layers and heads, in CSS pixels

// The ramp's colour for every byte, in the format of a canvas.
function colours(ramp) {
  const stops = rampStops(ramp);
  return Uint32Array.from({ length: 256 }, (_, value) => {
    const [red, green, blue] = rampColour(stops, value / 255);
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}

// All tiles on one sheet, at one pixel for each value. The canvas scales the sheet, so a resize needs no decoding.
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

// The colours of lines by the text of the token that looks, on a light page and on a dark one.
const HUES = { light: { a: "#0072b2", b: "#d98200" }, dark: { a: "#56b4e9", b: "#f0b030" } };

// Lines from the rows (left) to the columns (right) of every tile, at the size at which they are drawn.
function strands(data, bytes, wide, tall, hues) {
  const { layers, heads, rows, columns } = data;
  const sheet = document.createElement("canvas");
  sheet.width = heads * wide;
  sheet.height = layers * tall;
  const pen = sheet.getContext("2d");
  // Lines of neighbouring rows leave a gap: with many rows they would be one block of colour.
  const broadest = Math.min(wide / 40, 2.2, .4 * tall / rows);
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      pen.save();
      pen.translate(head * wide, layer * tall);
      const at = (layer * heads + head) * rows * columns;
      for (const [share, row, column] of strongest(data, bytes.subarray(at, at + rows * columns))) {
        pen.globalAlpha = Math.max(.08, share);
        pen.lineWidth = Math.max(Math.min(.7, broadest), broadest * share);
        pen.strokeStyle = hues[data.sides[row]] ?? hues[""];
        const [y1, y2] = [((row + .5) / rows) * tall, ((column + .5) / columns) * tall];
        pen.beginPath();
        pen.moveTo(0, y1);
        pen.bezierCurveTo(wide * .4, y1, wide * .6, y2, wide, y2);
        pen.stroke();
      }
      pen.restore();
    }
  }
  return sheet;
}

// The strongest lines of one tile, the weakest of them first. A byte is the square root of a share of the greatest weight.
function strongest({ columns, most, faintest }, bytes) {
  const found = [];
  bytes.forEach((value, at) => {
    const share = (value / 255) ** 2;
    if (share > faintest) found.push([share, Math.floor(at / columns), at % columns]);
  });
  return found.sort((one, other) => other[0] - one[0]).slice(0, most).reverse();
}

function paint(state, size, ratio) {
  const { data } = state;
  if (data.style !== "lines") {
    const source = data.bytes + data.ramp.join();
    if (state.source === source) return;
    state.source = source;
    state.sheet = mosaic(data, decode(data.bytes), colours(data.ramp));
    state.tile = [data.columns, data.rows];
    return;
  }
  const tile = [Math.max(4, Math.round(size.cell * ratio)), Math.max(4, Math.round(size.tall * ratio))];
  const source = [data.bytes, data.sides.join(), data.dark, ...tile].join(" ");
  if (state.source === source) return;
  state.source = source;
  const ink = getComputedStyle(state.board).color;
  const hues = { ...HUES[data.dark ? "dark" : "light"], "": ink };
  state.sheet = strands(data, decode(data.bytes), ...tile, hues);
  state.tile = tile;
}

function measure(state) {
  const width = state.board.clientWidth || 600;
  const cell = (width - LABEL) / state.data.heads;
  // Tiles as wide as the page allows; their height is at most their width and at most `tallest`.
  const tall = Math.max(14, Math.min(cell, state.data.tallest));
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
  paint(state, size, ratio);
  const open = new Map(state.heads.map((one) => [`${one.layer} ${one.head}`, one.colour || accent]));
  const [wide, tall] = state.tile;
  pen.imageSmoothingEnabled = data.style === "lines";
  const opened = state.heads.map((one) => one.head);
  for (const head of numbered(data.heads, size.cell, opened)) {
    number(pen, style, head, opened.includes(head), LABEL + (head + .5) * size.cell, LABEL / 2);
  }
  for (let layer = 0; layer < data.layers; layer++) {
    number(pen, style, layer, state.heads.some((one) => one.layer === layer), LABEL / 2 - 2, LABEL + (layer + .5) * size.tall);
    for (let head = 0; head < data.heads; head++) {
      const x = LABEL + head * size.cell + gap / 2;
      const y = LABEL + layer * size.tall + gap / 2;
      const box = [x, y, size.cell - gap, size.tall - gap];
      pen.drawImage(state.sheet, head * wide, layer * tall, wide, tall, ...box);
      if (data.texts && size.cell > 20) text(pen, state, layer * data.heads + head, box);
      frame(pen, state, layer, head, box, open.get(`${layer} ${head}`), style);
    }
  }
}

// The text of a tile, in black or white: the one with more contrast to the tile's colour.
function text(pen, state, index, [x, y, width, height]) {
  const { data } = state;
  const value = state.shares[index] / 255;
  const hex = data.ramp[Math.round(value * (data.ramp.length - 1))];
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  pen.fillStyle = .3 * red + .59 * green + .11 * blue > 140 ? "#111" : "#fff";
  const font = pen.font;
  if (width < 32) pen.font = font.replace("11px", "9px");
  if (pen.measureText(data.texts[index]).width <= width) pen.fillText(data.texts[index], x + width / 2, y + height / 2 + .5);
  pen.font = font;
}

// The heads that have a number above narrow tiles, where two numbers need so much room: the open ones, and every second
// or third.
function numbered(heads, cell, opened = []) {
  const every = Math.ceil((heads < 10 ? 10 : 16) / cell);
  const near = (head) => opened.some((one) => one !== head && Math.abs(one - head) < every);
  return [...Array(heads).keys()].filter((head) => opened.includes(head) || (head % every === 0 && !near(head)));
}

function number(pen, style, index, open, x, y) {
  pen.fillStyle = style.color;
  pen.globalAlpha = open ? 1 : .6;
  pen.fillText(String(index + 1), x, y);
  pen.globalAlpha = 1;
}

function frame(pen, state, layer, head, [x, y, width, height], open, style) {
  const near = state.near && layer === state.near.layer && head === state.near.head;
  pen.lineWidth = open ? 2.5 : near ? 1.5 : .5;
  pen.strokeStyle = open || style.color;
  pen.globalAlpha = open || near ? 1 : .28;
  pen.strokeRect(x - .5, y - .5, width + 1, height + 1);
  if (open) {
    // A light line between the frame and the map, which can be as dark as the frame.
    pen.lineWidth = 1;
    pen.strokeStyle = style.getPropertyValue("--st-background-color").trim() || "#fff";
    pen.strokeRect(x + 1.5, y + 1.5, width - 3, height - 3);
  }
  pen.globalAlpha = 1;
}

// The sheet of lines as SVG, for a white page.
function drawing(state) {
  const { data } = state;
  const { width, cell, tall, height } = measure(state);
  const bytes = decode(data.bytes);
  const hues = { ...HUES.light, "": "#222" };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const add = (name, values, text = "") => {
    const element = document.createElementNS(svg.namespaceURI, name);
    Object.entries(values).forEach(([key, value]) => element.setAttribute(key, value));
    element.textContent = text;
    svg.append(element);
  };
  for (const [key, value] of [["width", width], ["height", height], ["font-family", "sans-serif"], ["font-size", 11],
                              ["text-anchor", "middle"]]) svg.setAttribute(key, value);
  add("rect", { width, height, fill: "#fff" });
  for (const head of numbered(data.heads, cell)) add("text", { x: LABEL + (head + .5) * cell, y: 15 }, head + 1);
  for (let layer = 0; layer < data.layers; layer++) {
    add("text", { x: 9, y: LABEL + (layer + .5) * tall + 4 }, layer + 1);
    for (let head = 0; head < data.heads; head++) {
      const [left, top, wide, deep] = [LABEL + head * cell + 1, LABEL + layer * tall + 1, cell - 3, tall - 3];
      const at = (layer * data.heads + head) * data.rows * data.columns;
      add("rect", { x: left, y: top, width: wide, height: deep, fill: "none", stroke: "#222", "stroke-opacity": .28 });
      for (const [share, row, column] of strongest(data, bytes.subarray(at, at + data.rows * data.columns))) {
        const [y1, y2] = [row, column].map((place, side) => top + ((place + .5) / (side ? data.columns : data.rows)) * deep);
        const [from, to] = [left + wide * .4, left + wide * .6].map((x) => x.toFixed(1));
        add("path", { d: `M${left} ${y1.toFixed(1)}C${from} ${y1.toFixed(1)} ${to} ${y2.toFixed(1)} ${left + wide} ${y2.toFixed(1)}`,
          fill: "none", stroke: hues[data.sides[row]] ?? hues[""], "stroke-opacity": Math.max(.08, share).toFixed(2),
          "stroke-width": Math.max(.4, Math.min(wide / 40, 2.2) * share).toFixed(2) });
      }
    }
  }
  return svg;
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
    const shown = state.data.texts?.[near.layer * state.data.heads + near.head];
    tip.textContent = `Layer ${near.layer + 1}, head ${near.head + 1}${shown ? `: ${shown}` : ""}`;
    const left = LABEL + near.head * size.cell;
    tip.style.left = `${Math.min(left, size.width - tip.offsetWidth - 2)}px`;
    tip.style.top = `${Math.max(LABEL + near.layer * size.tall - 26, 0)}px`;
  }
  draw(state);
}

function onKey(state, event) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const { layers, heads } = state.data;
  const here = state.near ?? state.heads.at(-1) ?? { layer: 0, head: 0 };
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
  // Move the frame at once; the server's data of the opened head follow. A saved page draws its own within `send`.
  const before = state.heads;
  if (!state.several) state.heads = [place];
  if (!state.send("open", { layer: place.layer, head: place.head })) state.heads = before;
  draw(state);
}

// If the data have no chosen heads, takes those that another component on the page sent.
function choose(state) {
  const told = state.data.chosen ? { heads: state.data.chosen } : window.bertHeads;
  state.heads = told?.heads ?? [];
  state.several = Boolean(told?.several);
}

export default inOrder(function ({ parentElement, data, send }) {
  const board = parentElement.querySelector(".board");
  const state = board.state ?? (board.state = {});
  Object.assign(state, { board, data, send, canvas: board.querySelector("canvas"),
    tip: board.querySelector(".tip"), say: parentElement.querySelector(".say") });
  if (data.texts) state.shares = decode(data.bytes);
  choose(state);
  board.setAttribute("aria-label", `${data.label} Arrow keys move, Enter opens one.`);
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
  parentElement.querySelector(".hint").textContent = data.hint;
  const save = {
    svg: () => downloadSVG(withCaption(drawing(state), data.caption), data.name),
    png: () => {
      const whole = canvasWithCaption(state.canvas, data.caption, getComputedStyle(board), window.devicePixelRatio || 1);
      whole.toBlob((picture) => download(picture, `${data.name}.png`));
    },
    html: () => send("page", true),
  };
  parentElement.querySelector(".png").hidden = !data.alone;
  parentElement.querySelector(".png").onclick = save.png;
  const unsaved = onSave(data.name, save);
  savePage(data);
  board.onblur = () => point(state, null);
  draw(state);
  const unheard = onHeads(() => {
    choose(state);
    draw(state);
  });
  const unwatched = onWidth(board, () => draw(state));
  return () => {
    unsaved();
    unheard();
    unwatched();
  };
});
