// This file is put in front of the script of every component.

// Wraps a component's draw function, so that it skips data older than the data on the page: see `_made` in
// ui/elements/component_registry.py. What a drawing listens to ends before the next drawing: Streamlit ends it only when
// the component leaves the page, and every drawing would add its listeners.
function inOrder(draw) {
  return (component) => {
    const { parentElement: place, data } = component;
    // Streamlit calls the end of a drawing that is not the newest at once: only with the component may all end.
    const end = () => { if (!place.isConnected) place.end?.(); };
    if (data.made < place.made) return end;
    place.made = data.made;
    place.end?.();
    place.end = draw({ ...component, send: sender(component) });
    return end;
  };
}

const MOST_SENT = 50; // the most presses that are sent together; the same as in ui/elements/component_registry.py

// A function (event, value) that sends what the visitor does, and returns whether it was sent. While the server computes,
// Streamlit keeps only the newest message of a component: each has all presses that the server has not answered, in their
// order, as [number, event, value]. The server takes those that it has not had. A new session has had none: what was
// pressed in the session before is not sent to it.
function sender({ parentElement: place, data: { session, answered }, setTriggerValue }) {
  if (place.session !== session || !place.sent) place.sent = [];
  place.session = session;
  place.sent = place.sent.filter(([number]) => !(number <= answered));
  return (event, value) => {
    if (!setTriggerValue || !isConnected()) return false;
    // Greater than that of every press before, in whichever component: one that is drawn anew does not begin anew.
    window.bertPress = Math.max((window.bertPress ?? 0) + 1, Date.now());
    place.sent = [...place.sent, [window.bertPress, event, value]].slice(-MOST_SENT);
    setTriggerValue("presses", { session, presses: place.sent });
    return true;
  };
}

// Whether what is pressed now reaches the server. While the connection is lost it never arrives, not even later.
function isConnected() {
  const app = document.querySelector("[data-test-connection-state]");
  return !app || app.dataset.testConnectionState === "CONNECTED";
}

function decode(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Calls back when the width changes. A change of the height does not call back: the drawing itself sets the height.
function onWidth(element, callback) {
  let width = element.clientWidth;
  const watch = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    requestAnimationFrame(callback);
  });
  watch.observe(element);
  return () => watch.disconnect();
}

// Calls back with the focused element inside an element, and with null when the focus leaves.
// It uses listeners, as browsers have no onfocusin. When the component is drawn again, the new callback replaces the
// old one.
function onFocus(element, callback) {
  element.focusWatch?.abort();
  element.focusWatch = new AbortController();
  const { signal } = element.focusWatch;
  element.addEventListener("focusin", (event) => callback(event.target), { signal });
  element.addEventListener("focusout", () => callback(null), { signal });
  const here = element.querySelector(":focus");
  if (here) callback(here);
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const CAPTION_LINE = 16; // pixels of a line of a saved picture's caption

// The lines of a caption, each at most so many pixels wide.
function captionLines(caption, width) {
  const most = Math.max(20, Math.floor((width - 16) / 6.2)); // characters
  const lines = [];
  for (const word of caption.split(" ")) {
    const line = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && line.length <= most) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines;
}

// Adds a caption below a drawing, so that a saved picture says what it shows.
function withCaption(svg, caption) {
  if (!caption) return svg;
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  const lines = captionLines(caption, width);
  const all = height + CAPTION_LINE * (lines.length + 1);
  const add = (tag, values, text = "") => {
    const element = document.createElementNS(svg.namespaceURI, tag);
    for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
    element.textContent = text;
    svg.append(element);
  };
  svg.setAttribute("height", all);
  svg.setAttribute("viewBox", `0 0 ${width} ${all}`);
  add("rect", { y: height, width, height: all - height, fill: "#fff" });
  lines.forEach((text, index) => add("text", { x: 8, y: height + CAPTION_LINE * (index + 1), fill: "#222",
    "font-size": 11, "text-anchor": "start" }, text));
  return svg;
}

// A copy of a canvas on the page's ground with a caption below, for a screen with `ratio` pixels for each CSS pixel.
function canvasWithCaption(canvas, caption, style, ratio) {
  const lines = caption ? captionLines(caption, canvas.width / ratio) : [];
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height + ratio * CAPTION_LINE * (lines.length ? lines.length + 1 : 0);
  const pen = copy.getContext("2d");
  pen.fillStyle = style.getPropertyValue("--st-background-color").trim() || "#fff";
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  pen.fillStyle = style.color;
  pen.font = `${11 * ratio}px sans-serif`;
  lines.forEach((text, index) => pen.fillText(text, 8 * ratio, canvas.height + ratio * CAPTION_LINE * (index + 1)));
  return copy;
}

function svgBlob(svg) {
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
}

function downloadSVG(svg, name) {
  download(svgBlob(svg), `${name}.svg`);
}

// Saves an HTML page that the server made when its button was pressed. When drawn again, the data still have the page: it
// is not saved twice.
function savePage({ page, name }) {
  const saved = (window.bertPages ??= new Set());
  if (!page || saved.has(page.number)) return;
  saved.add(page.number);
  download(new Blob([page.html], { type: "text/html" }), `${name}.html`);
}

// At twice the size, for screens with a high resolution.
function downloadPNG(svg, name) {
  const image = new Image();
  const url = URL.createObjectURL(svgBlob(svg));
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((picture) => download(picture, `${name}.png`));
  };
  image.src = url;
}

// Whether a page is dark, from the colour of its text: a dark page has light text.
function isDark(ink) {
  const [red, green, blue] = (ink.match(/[\d.]+/g) ?? [0, 0, 0]).map(Number);
  return red + green + blue > 384;
}

// Sends the chosen heads from one component to the others, so that the data of a large component need not be sent again.
function tellHeads(chosen) {
  if (JSON.stringify(chosen) === JSON.stringify(window.bertHeads)) return;
  window.bertHeads = chosen;
  window.dispatchEvent(new Event("bert-heads"));
}

function onHeads(callback) {
  window.addEventListener("bert-heads", callback);
  return () => window.removeEventListener("bert-heads", callback);
}

// Sends the token under the pointer or the focus, by its position (null: none), to the other components of the page.
function tellToken(position) {
  window.dispatchEvent(new CustomEvent("bert-token", { detail: position }));
}

function onToken(callback) {
  const hear = (event) => callback(event.detail);
  window.addEventListener("bert-token", hear);
  return () => window.removeEventListener("bert-token", hear);
}

// The chip of a component's token, and the component's token of a chip: those at the same place of the text. `linked` has
// the lists of them, or is true if the component and the chips have the same tokens.
function chipOf(linked, position) {
  return linked.chips && position !== null ? linked.chips[position] ?? null : position;
}

function ownOf(linked, position) {
  return linked.own && position !== null ? linked.own[position] ?? null : position;
}

// Tells the drawing that is saved under a name to save itself as "svg", "png" or "html".
function tellSave(name, format) {
  window.dispatchEvent(new CustomEvent("bert-save", { detail: { name, format } }));
}

// `save`: from a format to the function that saves this drawing.
function onSave(name, save) {
  const hear = ({ detail }) => {
    if (detail.name === name) save[detail.format]?.();
  };
  window.addEventListener("bert-save", hear);
  return () => window.removeEventListener("bert-save", hear);
}

function make(tag, className, text = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

// Gives the parent `count` children: builds missing ones, removes the last ones.
function resize(parent, count, build) {
  while (parent.children.length < count) parent.append(build());
  while (parent.children.length > count) parent.lastElementChild.remove();
}

// The number of words by which a key moves the focus, along `most` words. In a right-to-left text the left arrow moves
// forward.
function wordStep(event, most) {
  const onward = event.target.closest("[dir=rtl]") ? -1 : 1;
  return { ArrowRight: onward, ArrowLeft: -onward, ArrowDown: 1, ArrowUp: -1, Home: -most, End: most }[event.key];
}

// A token in a line of another text: what is written from right to left, such as Hebrew and Arabic, is kept apart from
// the line, whose numbers and quotation marks it would draw into itself; the same as in ui/widgets/formatting.py.
function isolated(text) {
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(text) ? `\u2068${text}\u2069` : text;
}

// A share as "46.1%", near 1 as "> 99.9%" and near 0 as "< 0.1%"; the same as percent in ui/widgets/formatting.py.
function percent(share) {
  if (share >= .9995) return "> 99.9%";
  return share >= .001 ? `${(100 * share).toFixed(1)}%` : "< 0.1%";
}

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// rampStops: a colour scale of "#rrggbb" as numbers. rampColour: its colour at a share from 0 to 1.
function rampStops(ramp) {
  return ramp.map(rgb);
}

function rampColour(stops, share) {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((from, c) => Math.round(from + (at - low) * (stops[low + 1][c] - from)));
}

// Nearly black or white: the one with the higher contrast to a colour, by the formula of WCAG 2.
function inkOn(colour) {
  const [red, green, blue] = colour.map((part) => (part / 255 <= .04045 ? part / 3294.6 : ((part / 255 + .055) / 1.055) ** 2.4));
  return .2126 * red + .7152 * green + .0722 * blue > .187 ? "#111418" : "#ffffff";
}

// Numbers that were packed as little-endian float32 in base64.
function floats(base64) {
  return new Float32Array(decode(base64).buffer);
}

// The colours of D components, each of red, green, blue and strength, 0 to 255: blue is above zero, orange below.
function stripColours(values, greatest, hues) {
  return Array.from(values, (value) =>
    [...(value < 0 ? hues.least : hues.most), Math.round(255 * Math.min(1, Math.abs(value) / greatest))]);
}

// A strip of D components, one pixel each, which the style sheet stretches.
function strip(canvas, values, greatest, hues) {
  canvas.width = values.length;
  canvas.height = 1;
  const image = new ImageData(new Uint8ClampedArray(stripColours(values, greatest, hues).flat()), values.length, 1);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// The same strip as a background: Chromium makes a layer of every canvas, which costs time in each frame of a motion.
function stripBackground(values, greatest, hues) {
  const share = 100 / values.length;
  const bands = stripColours(values, greatest, hues).map(([red, green, blue, strength], at) =>
    `rgb(${red} ${green} ${blue} / ${(strength / 255).toFixed(3)}) ${(at * share).toFixed(3)}% ${((at + 1) * share).toFixed(3)}%`);
  return `linear-gradient(90deg, ${bands})`;
}

function greatest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
}

// A number with a true minus; what is rounded to zero has no sign.
function signed(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  return `${value < 0 && Number(text) ? "−" : ""}${text}`;
}

// The colours of a strip: `most` above zero, `least` below.
function stripHues(dark) {
  return dark ? { least: rgb("#f0b030"), most: rgb("#56b4e9") } : { least: rgb("#d98200"), most: rgb("#0072b2") };
}
