// The computation of one query's weights. Each key has a row: its vector, the product with the query, the sum, the weight.

// A share after its name: "= 46.1%", "< 0.1%" or "> 99.9%".
function relation(share) {
  const text = percent(share);
  return /^[<>]/.test(text) ? text : `= ${text}`;
}

// A score; none for a token that the query may not read.
function scoreOf(score) {
  return score === null ? "—" : signed(score);
}

// The weight of a token, or that the query may not read it.
function weightOf(score, weight) {
  return score === null ? "not read" : percent(weight);
}

function option(className) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = className;
  button.setAttribute("role", "option");
  return button;
}

function buildKey() {
  const row = option("row key");
  for (const className of ["token", "k", "p", "number score", "number share"]) {
    const part = document.createElement(className.length === 1 ? "canvas" : "span");
    part.className = className;
    row.append(part);
  }
  return row;
}

// One element of a list is reached with the Tab key; the arrow keys move to the others.
function rove(list, chosen) {
  for (const child of list.children) child.tabIndex = child === chosen ? 0 : -1;
  list.onkeydown = (event) => {
    const all = [...list.children];
    const step = wordStep(event, all.length);
    if (!step) return;
    event.preventDefault();
    all[Math.min(Math.max(all.indexOf(event.target) + step, 0), all.length - 1)].focus();
  };
}

function drawQueries(list, data, send) {
  list.dir = data.direction;
  resize(list, data.queries.length, () => option("query"));
  data.queries.forEach(({ token, position }, index) => {
    const button = list.children[index];
    button.textContent = token;
    button.setAttribute("aria-selected", String(position === data.query));
    button.onclick = () => {
      for (const other of list.children) other.setAttribute("aria-selected", String(other === button));
      send("query", position);
    };
  });
  rove(list, list.querySelector("[aria-selected=true]") ?? list.firstChild);
}

function drawKeys(state) {
  const { data, list, hues, query, keys, products } = state;
  const [mostKey, mostProduct, mostWeight] = [greatest(keys), greatest(products), greatest(data.weights)];
  const size = query.length;
  resize(list, data.keys.length, buildKey);
  data.keys.forEach(({ token }, index) => {
    const row = list.children[index];
    const part = (name) => row.querySelector(name);
    part(".token").textContent = token;
    strip(part(".k"), keys.subarray(index * size, (index + 1) * size), mostKey, hues);
    strip(part(".p"), products.subarray(index * size, (index + 1) * size), mostProduct, hues);
    const score = scoreOf(data.scores[index]);
    const weight = weightOf(data.scores[index], data.weights[index]);
    part(".score").textContent = score;
    part(".share").textContent = weight;
    part(".share").style.setProperty("--share", `${(100 * data.weights[index]) / mostWeight}%`);
    row.setAttribute("aria-label", data.scores[index] === null ? `${token}: not read` : `${token}: sum ${score}, weight ${weight}`);
    row.onclick = () => {
      state.pair = index;
      drawPair(state);
      state.send("key", data.keys[index].position);
    };
  });
}

function drawPair(state) {
  const { data, root, hues, query, keys, products, pair } = state;
  [...state.list.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === pair)));
  rove(state.list, state.list.children[pair]);
  const size = query.length;
  const key = keys.subarray(pair * size, (pair + 1) * size);
  const product = products.subarray(pair * size, (pair + 1) * size);
  const result = data.scores[pair] === null ? "not read"
    : `sum / √${size} = ${signed(data.scores[pair])}, softmax ${relation(data.weights[pair])}`;
  root.querySelector(".say").textContent = `Query “${isolated(data.token)}”, key “${isolated(data.keys[pair].token)}”: ${result}`;
  const most = Math.max(greatest(query), greatest(key));
  const strips = [[".q", query, most], [".k", key, most], [".p", product, greatest(product)]];
  const ranked = [...product.keys()].sort((one, other) => Math.abs(product[other]) - Math.abs(product[one])).slice(0, 3);
  const said = (at) => `component ${at + 1}: ${signed(query[at])} × ${signed(key[at])} = ${signed(product[at])}`;
  const note = root.querySelector(".note");
  const usual = `Blue is above zero, orange below. Largest products: ${ranked.map(said).join("; ")}.`;
  note.textContent = usual;
  for (const [name, values, greatestValue] of strips) {
    const canvas = root.querySelector(`.pair ${name}`);
    strip(canvas, values, greatestValue, hues);
    canvas.onpointermove = (event) => {
      const box = canvas.getBoundingClientRect();
      const at = Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * size), 0), size - 1);
      note.textContent = said(at);
    };
    canvas.onpointerleave = () => { note.textContent = usual; };
  }
}

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".neuron");
  const query = floats(data.query_vector);
  const keys = floats(data.key_vectors);
  const products = keys.map((value, at) => value * query[at % query.length]);
  const hues = stripHues(data.dark);
  const state = { root, data, query, keys, products, hues, list: root.querySelector(".keys"), send,
    pair: Math.max(0, data.keys.findIndex((one) => one.position === data.key)) };
  drawQueries(root.querySelector(".queries"), data, send);
  drawKeys(state);
  drawPair(state);
});
