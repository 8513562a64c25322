// The way of a text through a model, one step at a time. Going from step to step needs no run of the server; the step
// and the token are sent when the visitor stays. Everything moves by transforms and opacity (Web Animations API).

const COLOURS = { pieces: "#6a5acd", embeddings: "#0072b2", head: "#e69f00", heads: "#e69f00", attention_norm: "#8a92a0",
  feed_forward: "#009e73", layers: "#0072b2", nsp: "#cc79a7", sop: "#cc79a7", replaced: "#d55e00", task: "#6a5acd",
  mlm: "#d55e00" };
const STAY = 1500; // milliseconds after which the step is sent, if nothing moves any more
const SCROLL = 60; // pixels of a wheel or a finger that make a step
const REST = 350; // milliseconds after a step in which scrolling makes no other: a trackpad goes on rolling
const READING = 6000; // milliseconds that a step is shown while playing
const EASE = "cubic-bezier(.2, .7, .2, 1)";
const IN_LAYER = ["head", "heads", "attention_norm", "feed_forward"];

function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Lets an element arrive: from a shift, after a delay.
function arrive(element, delay = 0, from = "translateY(-14px)", duration = 420) {
  if (still()) return;
  element.animate([{ opacity: 0, transform: from }, { opacity: 1, transform: "none" }],
    { duration, delay, easing: EASE, fill: "backwards" });
}

function grow(element, delay) {
  if (still()) return;
  element.animate([{ transform: "scaleX(0)" }, { transform: "scaleX(1)" }],
    { duration: 500, delay, easing: EASE, fill: "backwards" });
}

class Walk {
  constructor(root) {
    this.root = root;
    this.find = (name) => root.querySelector(name);
    this.step = this.token = 0;
    this.find(".back").onclick = () => this.walk(-1);
    this.find(".next").onclick = () => this.walk(1);
    this.find(".play").onclick = () => this.play(!this.timer);
    this.find(".slider").oninput = (event) => {
      this.play(false);
      this.go(Number(event.target.value));
    };
    for (const name of ["layer", "head"]) {
      this.find(`.${name}`).onchange = () => this.choose();
    }
    this.find(".stage").onpointermove = this.find(".stage").onpointerdown = (event) => this.point(event);
    this.find(".stage").onpointerleave = () => this.say("");
    this.find(".tokens").onkeydown = (event) => this.tokenKey(event);
    // Scrolling sideways walks, and so does scrolling over the steps; elsewhere the page scrolls down as ever.
    root.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    root.addEventListener("touchstart", (event) => this.touch(event), { passive: true });
    root.addEventListener("touchend", (event) => this.lift(event), { passive: true });
    this.find(".deeper").onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      clearTimeout(this.stay);
      this.send("go", this.place());
    };
  }

  // ---- data

  take(data, send) {
    this.data = data;
    this.send = send;
    this.hues = stripHues(data.dark);
    const [step, token] = [data.steps.indexOf(data.step), data.token - data.first];
    // What this browser has sent itself is not taken back: the visitor may have gone on.
    const sent = `${data.step} ${data.token}`;
    if (this.sent !== sent) {
      this.sent = sent;
      this.step = step;
      this.token = token;
      clearTimeout(this.stay);
    } else if (this.position !== undefined) {
      // The drawn part of a long text may have moved.
      this.token = Math.min(Math.max(this.position - data.first, 0), data.tokens.length - 1);
    }
    this.step = Math.min(this.step, data.steps.length - 1);
    this.position = data.first + this.token;
    const content = JSON.stringify({ ...data, step: 0, token: 0, made: 0, texts: 0 });
    const moved = this.content !== undefined;
    if (this.content === content && this.shown === `${this.step} ${this.token}`) return this.frame();
    this.content = content;
    this.vectors = Object.fromEntries(Object.entries(data.strips).map(([name, one]) => [name, floats(one.values)]));
    this.states = floats(data.states);
    this.scores = floats(data.scores);
    this.weights = floats(data.weights);
    this.joined = floats(data.joined.values);
    this.build();
    this.draw(!moved);
  }

  build() {
    const { data } = this;
    const slider = this.find(".slider");
    slider.max = data.steps.length - 1;
    const rail = this.find(".rail");
    resize(rail, data.steps.length, () => {
      const button = make("button", "stop");
      button.type = "button";
      button.append(make("b", ""), make("span", ""));
      return button;
    });
    data.texts.forEach((text, index) => {
      const button = rail.children[index];
      button.firstChild.textContent = index + 1;
      button.lastChild.textContent = text.short;
      button.style.setProperty("--part", COLOURS[text.name] ?? "#8a92a0");
      button.setAttribute("aria-label", `Step ${index + 1}: ${text.short}`);
      button.onclick = () => {
        this.play(false);
        this.go(index);
      };
    });
    const row = this.find(".tokens");
    row.dir = data.direction;
    resize(row, data.tokens.length, () => {
      const button = make("button", "token");
      button.type = "button";
      button.setAttribute("role", "radio");
      return button;
    });
    data.tokens.forEach((token, index) => {
      const button = row.children[index];
      button.textContent = token;
      button.classList.toggle("masked", data.masked[index]);
      button.onclick = () => this.follow(index);
    });
    const outside = data.total - data.tokens.length;
    this.find(".hint").textContent = outside
      ? `Tokens ${data.first + 1} to ${data.first + data.tokens.length} of ${data.total} are drawn; the others count all the same.`
      : "";
    this.find(".hint").hidden = !outside;
    for (const [name, count] of [["layer", data.layers], ["head", data.heads]]) {
      const select = this.find(`.${name}`);
      resize(select, count, () => document.createElement("option"));
      [...select.children].forEach((option, index) => {
        option.value = index;
        option.textContent = index + 1;
      });
      select.value = data[name];
    }
  }

  // ---- moving

  place() {
    return { step: this.data.steps[this.step], token: this.position };
  }

  walk(by) {
    this.play(false);
    this.go(this.step + by);
  }

  go(step) {
    step = Math.min(Math.max(step, 0), this.data.steps.length - 1);
    if (step === this.step) return;
    this.step = step;
    this.draw(true);
    this.remember();
  }

  follow(token) {
    token = Math.min(Math.max(token, 0), this.data.tokens.length - 1);
    if (token === this.token) return;
    this.token = token;
    this.position = this.data.first + token;
    this.draw(false);
    this.remember();
  }

  remember() {
    clearTimeout(this.stay);
    this.stay = setTimeout(() => {
      if (this.timer) return; // playing: the visitor has not stopped here
      const { step, token } = this.place();
      if (this.sent === `${step} ${token}` || !this.root.isConnected) return;
      // The run of the page that follows would make the motion stumble.
      if (this.root.getAnimations({ subtree: true }).some((one) => one.playState === "running")) return this.remember();
      if (this.send("pause", { step, token })) this.sent = `${step} ${token}`;
    }, STAY);
  }

  choose(layer = Number(this.find(".layer").value), head = Number(this.find(".head").value)) {
    this.send("choose", { layer, head });
  }

  play(on) {
    clearInterval(this.timer);
    this.timer = undefined;
    const button = this.find(".play");
    button.textContent = on ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(on));
    if (!on) return this.remember();
    this.timer = setInterval(() => {
      if (!this.root.isConnected || this.step + 1 >= this.data.steps.length) return this.play(false);
      this.go(this.step + 1);
    }, READING);
    if (this.step + 1 >= this.data.steps.length) {
      this.step = -1;
      this.go(0);
    } else {
      this.draw(true);
    }
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = event.composedPath()[0];
    if (!this.root.isConnected || !this.root.getClientRects().length) return;
    const here = this.root.contains(target);
    // Other fields and widgets keep their keys, and so do the tokens, the slider and the lists of this component.
    if (!here && target !== document.body && target !== document.documentElement) return;
    if (here && target.closest(".tokens, input, select")) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.walk(by);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) return; // zooms the page
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways && !event.target.closest(".controls, .rail")) return;
    event.preventDefault();
    const now = event.timeStamp;
    if (now - (this.walked ?? -REST) < REST) return;
    // A wheel counts lines or pages, a trackpad pixels; what was begun long ago is forgotten.
    const pixels = (sideways ? event.deltaX : event.deltaY) * [1, 30, 300][event.deltaMode];
    this.rolled = now - this.rolledAt < REST ? this.rolled + pixels : pixels;
    this.rolledAt = now;
    if (Math.abs(this.rolled) < SCROLL) return;
    this.walked = now;
    const by = Math.sign(this.rolled);
    this.rolled = 0;
    this.walk(by);
  }

  touch(event) {
    const [finger] = event.touches;
    // A finger on a slider or on colours moves the slider or reads values.
    this.finger = event.touches.length === 1 && !event.target.closest("input, select, .strip") ? finger : undefined;
  }

  lift(event) {
    const [from, to] = [this.finger, event.changedTouches[0]];
    this.finger = undefined;
    if (!from || from.identifier !== to.identifier) return;
    const [across, down] = [from.clientX - to.clientX, from.clientY - to.clientY];
    if (Math.abs(across) >= SCROLL && Math.abs(across) > 2 * Math.abs(down)) this.walk(Math.sign(across));
  }

  tokenKey(event) {
    const all = [...this.find(".tokens").children];
    const by = wordStep(event, all.length);
    if (!by) return;
    event.preventDefault();
    this.follow(this.token + by);
    all[this.token].focus();
  }

  // ---- drawing

  frame() {
    const { data, step, token } = this;
    const text = data.texts[step];
    this.find(".count").textContent = `${step + 1} / ${data.steps.length}`;
    const slider = this.find(".slider");
    slider.value = step;
    slider.setAttribute("aria-valuetext", `Step ${step + 1} of ${data.steps.length}: ${text.title}`);
    this.find(".back").disabled = step === 0;
    this.find(".next").disabled = step + 1 === data.steps.length;
    [...this.find(".rail").children].forEach((stop, index) => {
      stop.classList.toggle("done", index < step);
      if (index === step) stop.setAttribute("aria-current", "step"); else stop.removeAttribute("aria-current");
    });
    [...this.find(".tokens").children].forEach((button, index) => {
      button.setAttribute("aria-checked", String(index === token));
      button.tabIndex = index === token ? 0 : -1;
    });
    this.find(".card").style.setProperty("--part", COLOURS[text.name] ?? "#8a92a0");
    const title = this.find(".title");
    if (title.textContent !== text.title) title.textContent = text.title;
    this.find(".text").textContent = text.text;
    this.find(".layer-choice").hidden = !IN_LAYER.includes(text.name) || data.layers < 2;
    this.find(".head-choice").hidden = !["head", "heads"].includes(text.name) || data.heads < 2;
    this.find(".shapes").replaceChildren(...text.shapes.map(([name, shape, letters]) => {
      const chip = make("span", "shape", `${name} `);
      chip.title = letters;
      chip.append(make("b", "", shape));
      return chip;
    }));
    this.find(".formula div").replaceChildren(...text.formula.map((line) => make("p", "", line)));
    const link = this.find(".deeper");
    link.textContent = `${text.page_title} →`;
    link.setAttribute("aria-label", `Go deeper: ${text.page_title}`);
    link.href = text.href;
  }

  // `moving`: whether the drawing arrives part by part. Then its parts are made in one frame, shown in the next and set in
  // motion in the one after, so that no frame takes long. A change of the token, the layer or the head is drawn at once.
  draw(moving) {
    this.moving = moving && !still();
    this.shown = `${this.step} ${this.token}`;
    this.frame();
    const name = this.data.steps[this.step];
    let parts;
    this.inTurn([
      () => {
        this.later = [];
        parts = this[DRAWINGS[name]]();
      },
      () => {
        const stage = this.find(".stage");
        stage.className = `stage ${name}`;
        stage.replaceChildren(...parts);
        this.say("");
      },
      () => this.start(),
    ]);
  }

  // Does one act a frame if the drawing moves, else all at once. What an earlier call has not done yet is left out.
  inTurn(acts) {
    cancelAnimationFrame(this.coming);
    if (!this.moving) return acts.forEach((act) => act());
    const next = () => {
      acts.shift()();
      if (acts.length) this.coming = requestAnimationFrame(next);
    };
    this.coming = requestAnimationFrame(next);
  }

  // What needs to know where the parts of the drawing are.
  start() {
    for (const act of this.later) act();
  }

  arrive(element, ...more) {
    if (this.moving) arrive(element, ...more);
    return element;
  }

  say(text) {
    const hint = this.find(".stage .strip") ? "Point at a colour or tap it for its value: blue is above zero, orange below." : "";
    this.find(".readout").textContent = text || hint;
  }

  point(event) {
    const drawn = event.target.closest(".strip");
    if (!drawn?.cells) return this.say("");
    const box = drawn.getBoundingClientRect();
    const { name, values, units, width } = drawn.cells;
    const at = Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * values.length), 0), values.length - 1);
    this.say(`${name}: unit ${units[at]} of ${width} is ${signed(values[at])}`);
  }

  // A vector as a strip of some of its units.
  paint(values, { name, units, width, full }) {
    const drawn = make("span", "strip");
    drawn.style.backgroundImage = stripBackground(values, full, this.hues);
    drawn.cells = { name, values, units, width: width.toLocaleString("en") };
    drawn.setAttribute("role", "img");
    const part = units.length < width ? `${units.length} of ${width} units` : `${width} units`;
    drawn.setAttribute("aria-label", `${name}: ${part}, ${signed(Math.min(...values))} to ${signed(Math.max(...values))}`);
    return drawn;
  }

  vector(key, label, token = this.token) {
    const one = this.data.strips[key];
    const units = this.data.units[one.width];
    const values = this.vectors[key].subarray(token * units.length, (token + 1) * units.length);
    return this.paint(values, { name: label, units, width: this.data.widths[one.width], full: one.full });
  }

  length(key, token = this.token) {
    return this.data.strips[key].lengths[token];
  }

  // How many of the units are drawn.
  sample(...widths) {
    const { data } = this;
    const names = { hidden: "hidden units", embedding: "embedding units", inner: "inner units", head: "units of the head" };
    const drawn = widths.filter((width, index) => widths.indexOf(width) === index && data.units[width].length < data.widths[width]);
    const said = drawn.map((width) => `${data.units[width].length} of ${data.widths[width].toLocaleString("en")} ${names[width]}`);
    return make("p", "sample", said.length ? `Drawn: ${said.join(", ")}, at equal steps.` : "");
  }

  word(token = this.token) {
    return this.data.tokens[token];
  }

  // A copy of a strip, to move over the drawing.
  copy(drawn) {
    const ghost = drawn.cloneNode();
    ghost.classList.add("ghost");
    ghost.removeAttribute("role");
    ghost.removeAttribute("aria-label");
    ghost.setAttribute("aria-hidden", "true");
    return ghost;
  }

  // A sum written downwards: rows of a sign, a label, a strip and a length. A row that is a `result` takes in those above.
  equation(rows, start = 0) {
    const table = make("div", "equation");
    const built = rows.map((row, index) => {
      const line = make("div", `line${row.result ? " result" : ""}`);
      const label = make("span", "label", row.label);
      line.append(make("span", "sign", row.sign ?? ""), label, row.strip);
      line.append(make("span", "length", row.length === undefined ? "" : `length ${row.length.toFixed(1)}`));
      line.title = row.title ?? "";
      this.arrive(line, start + index * 420, row.result ? "translateY(-22px)" : "translateX(-18px)");
      table.append(line);
      return line;
    });
    if (this.moving) {
      this.later.push(() => {
        const sum = rows.findIndex((row) => row.result);
        if (sum < 1) return;
        const end = built[sum].offsetTop;
        built.slice(0, sum).forEach((line) => {
          const drawn = line.querySelector(".strip");
          const ghost = this.copy(drawn);
          ghost.style.left = `${drawn.offsetLeft}px`;
          ghost.style.top = `${drawn.offsetTop}px`;
          ghost.style.width = `${drawn.offsetWidth}px`;
          table.append(ghost);
          ghost.animate([{ opacity: 0, transform: "none" }, { opacity: .9, transform: "none", offset: .1 },
            { opacity: 0, transform: `translateY(${end - line.offsetTop}px)` }],
          { duration: 700, delay: start + sum * 420 - 120, easing: "ease-in", fill: "both" }).onfinish = () => ghost.remove();
        });
      });
    }
    return table;
  }

  // Covers the cells of a column and takes the cover away: one element moves, however many rows there are, as each
  // moving element costs the browser a layer in every frame.
  uncover(board, rows, cell, frames, timing, origin = "center") {
    const [first, last] = [rows[0], rows.at(-1)].map((row) => row.querySelector(cell));
    const cover = make("i", "cover");
    cover.style.cssText = `left: ${first.offsetLeft}px; top: ${first.offsetTop - 3}px; width: ${first.offsetWidth + 2}px; `
      + `height: ${last.offsetTop + last.offsetHeight + 6 - first.offsetTop}px; transform-origin: ${origin}`;
    board.append(cover);
    cover.animate(frames, { ...timing, fill: "both" }).onfinish = () => cover.remove();
  }

  // A small strip for every token; a press follows that token.
  matrix(key, title, note, start = 0) {
    const box = make("div", "matrix");
    box.append(make("h3", "", title));
    this.data.tokens.forEach((token, index) => {
      const row = make("div", `row${index === this.token ? " chosen" : ""}`);
      const name = make("span", "name", token);
      row.append(name, this.vector(key, `${note} of ${token}`, index));
      row.onclick = () => this.follow(index);
      box.append(row);
    });
    // All at once: see `uncover`.
    return this.arrive(box, start, "translateX(-12px)", 400);
  }

  bar(label, share, { text = percent(share), most = 1, chosen = false, delay = 0, was = "" } = {}) {
    const row = make("div", `bar${chosen ? " chosen" : ""}`);
    const fill = make("i", "");
    fill.style.width = `${Math.max(100 * Math.min(1, share / most), .5)}%`;
    const track = make("span", "track");
    track.append(fill);
    const name = make("span", "name", label);
    name.title = was;
    row.append(name, track, make("span", "share", text));
    if (this.moving) {
      grow(fill, delay);
      arrive(row, delay, "none", 250);
    }
    return row;
  }

  // ---- the steps

  drawPieces() {
    const { data } = this;
    const row = make("div", "words");
    row.dir = data.direction;
    data.groups.forEach((group, number) => {
      const box = make("div", `group${group.text === null ? " added" : ""}`);
      const word = make("span", "word", group.text ?? "");
      const pieces = make("div", "pieces");
      group.pieces.forEach((index, place) => {
        const button = make("button", `piece${index === this.token ? " chosen" : ""}${data.masked[index] ? " masked" : ""}`);
        button.type = "button";
        button.append(make("b", "", data.tokens[index]), make("small", "", data.ids[index]));
        button.setAttribute("aria-label", `${data.tokens[index]}, number ${data.ids[index]}, position ${data.first + index}`);
        button.onclick = () => this.follow(index);
        this.arrive(button, 350 + number * 90 + place * 130,
          group.text === null ? "translateY(26px) scale(.8)" : "translateY(-30px)", 520);
        pieces.append(button);
      });
      if (group.text !== null) this.arrive(word, number * 45, "translateY(-8px)", 260);
      if (group.pieces.some((index) => data.masked[index])) word.classList.add("hidden-word");
      box.append(word, pieces);
      row.append(box);
    });
    return [row, make("p", "sample", "Below each piece stands its number in the list. Dashed: added by the tokenizer.")];
  }

  drawEmbeddings() {
    const { data } = this;
    const place = data.first + this.token;
    const labels = { token: `“${this.word()}”`, position: `position ${place}`, segment: "its text" };
    const group = data.groups.find((one) => one.pieces.includes(this.token));
    if (group.side) labels.segment = `text ${group.side.toUpperCase()}`;
    const rows = data.parts.map((part, index) => ({ sign: index ? "+" : "", label: labels[part],
      strip: this.vector(`part_${part}`, labels[part]), length: this.length(`part_${part}`) }));
    if (rows.length > 1) {
      rows.push({ sign: "=", label: "sum", strip: this.vector("embedding_sum", "sum"), length: this.length("embedding_sum"), result: true });
    }
    rows.push({ sign: "→", label: "normalised", strip: this.vector("embedding_norm", "normalised"), length: this.length("embedding_norm") });
    return [this.equation(rows), this.matrix("embedding_norm", "The same for all tokens", "vector", 500 + 420 * rows.length),
      this.sample("embedding")];
  }

  drawHead() {
    const { data, token } = this;
    const count = data.tokens.length;
    const board = make("div", "board");
    const query = make("div", "query-line");
    query.append(make("span", "name", `query of “${this.word()}”`), this.vector("query", `query of ${this.word()}`));
    this.arrive(query, 0, "translateX(-24px)");
    const top = make("div", "row top");
    for (const name of ["token", "its key", "score", "weight", "its value"]) top.append(make("span", "", name));
    board.append(query, top);
    const weights = this.weights.subarray(token * count, (token + 1) * count);
    const scores = this.scores.subarray(token * count, (token + 1) * count);
    const most = weights.reduce((one, other) => Math.max(one, other), 1e-9);
    const rows = data.tokens.map((name, index) => {
      const may = !Number.isNaN(scores[index]);
      const row = make("div", `row${index === token ? " chosen" : ""}${may ? "" : " unread"}`);
      const key = this.vector("key", `key of ${name}`, index);
      const value = this.vector("value", `value of ${name}`, index);
      value.style.opacity = .12 + .88 * (weights[index] / most);
      const score = make("span", "score", may ? signed(scores[index]) : "—");
      const weight = make("span", "weight");
      const fill = make("i", "");
      fill.style.width = `${Math.max(100 * (weights[index] / most), may ? 1 : 0)}%`;
      weight.append(fill, make("b", "", may ? percent(weights[index]) : "not read"));
      row.append(make("span", "name", name), key, score, weight, value);
      row.onclick = () => this.follow(index);
      row.setAttribute("aria-label", may ? `${name}: score ${signed(scores[index])}, weight ${percent(weights[index])}` : `${name}: not read`);
      board.append(row);
      return row;
    });
    if (data.rest?.[token] > 0) board.append(make("p", "sample", `The tokens that are not drawn have ${percent(data.rest[token])} of the weights.`));
    const out = make("div", "query-line result");
    out.append(make("span", "name", "weighted sum of the values"), this.vector("head_output", "output of the head"));
    this.arrive(out, 2700, "translateY(-26px)", 500);
    board.append(out);
    if (this.moving) {
      // The query passes over the keys, each score appears as it is passed, then the weights and values.
      this.later.push(() => {
        const [from, to] = ["none", "scaleY(0)"];
        this.uncover(board, rows, ".score", [{ transform: from }, { transform: from, offset: .2 }, { transform: to, offset: .95 }, { transform: to }],
          { duration: 1250, delay: 450 }, "bottom");
        this.uncover(board, rows, ".weight", [{ transform: from }, { transform: "scaleX(0)" }], { duration: 500, delay: 1700, easing: EASE }, "right");
        this.uncover(board, rows, ".weight + .strip", [{ opacity: 1 }, { opacity: 0 }], { duration: 450, delay: 2250 });
      });
      this.later.push(() => {
        const from = query.querySelector(".strip");
        const ghost = this.copy(from);
        const [first, last] = [rows[0].querySelector(".strip"), rows[count - 1].querySelector(".strip")];
        ghost.style.cssText += `left: ${first.offsetLeft}px; top: ${from.offsetTop}px; width: ${first.offsetWidth}px`;
        board.append(ghost);
        ghost.animate([{ transform: "none", opacity: .95 }, { transform: `translateY(${first.offsetTop - from.offsetTop}px)`, opacity: .95, offset: .2 },
          { transform: `translateY(${last.offsetTop - from.offsetTop}px)`, opacity: .95, offset: .95 },
          { transform: `translateY(${last.offsetTop - from.offsetTop}px)`, opacity: 0 }],
        { duration: 1250, delay: 450, easing: "linear", fill: "both" }).onfinish = () => ghost.remove();
      });
    }
    return [board, this.sample("head")];
  }

  drawHeads() {
    const { data, token } = this;
    const { units, full, most, shares } = data.joined;
    const [heads, size, width] = [data.heads, units.length, data.widths.head];
    const part = (head) => this.joined.subarray((token * heads + head) * size, (token * heads + head + 1) * size);
    const painted = (head) => this.paint(part(head), { name: `head ${head + 1}`, units, width, full });
    const grid = make("div", "grid");
    const bar = make("div", "joined");
    for (let head = 0; head < heads; head++) {
      const card = make("button", "head-card");
      card.type = "button";
      card.setAttribute("aria-pressed", String(head === data.head));
      const looks = `${most[token][head]} ${percent(shares[token][head])}`;
      card.append(make("b", "", head + 1), painted(head), make("span", "looks", looks));
      card.setAttribute("aria-label", `Head ${head + 1}: looks most at ${looks}`);
      card.onclick = () => this.choose(data.layer, head);
      this.arrive(card, head * 35, "translateY(-12px) scale(.96)", 320);
      grid.append(card);
      const piece = make("span", `segment${head === data.head ? " chosen" : ""}`);
      piece.append(painted(head));
      bar.append(piece);
    }
    const mixed = this.equation([
      { sign: "→", label: "mixed by a matrix", strip: this.vector("attention_output", "output of attention"), length: this.length("attention_output") },
    ], 1500);
    if (this.moving) {
      this.later.push(() => {
        const from = [...grid.children].map((card) => card.querySelector(".strip").getBoundingClientRect());
        const to = [...bar.children].map((one) => one.getBoundingClientRect());
        [...bar.children].forEach((one, head) => {
          const [start, end] = [from[head], to[head]];
          const shift = `translate(${start.left - end.left}px, ${start.top - end.top}px) scaleX(${start.width / Math.max(end.width, 1)})`;
          one.animate([{ transform: shift, opacity: 0 }, { transform: shift, opacity: 1, offset: .1 }, { transform: "none", opacity: 1 }],
            { duration: 800, delay: 450 + head * 20, easing: EASE, fill: "backwards" });
        });
      });
    }
    const note = make("p", "sample", "In each box: what the head looks at most from here, and its weight. A press opens the head.");
    return [grid, note, make("h3", "", "Side by side"), bar, mixed,
      make("p", "sample", size < width ? `Drawn: ${size} of ${width} units of each head, and ${data.units.hidden.length} of `
        + `${data.widths.hidden.toLocaleString("en")} hidden units.` : "")];
  }

  drawNorm() {
    const { layer, norm_first: normFirst } = this.data;
    const came = layer ? `from layer ${layer}` : "from the embeddings";
    const copy = normFirst ? "normalised copy" : "normalised";
    return [this.equation([
      { label: came, strip: this.vector("state", came), length: this.length("state") },
      { sign: "+", label: "what the heads found", strip: this.vector("attention_output", "what the heads found"), length: this.length("attention_output") },
      { sign: "=", label: "sum", strip: this.vector("attention_sum", "sum"), length: this.length("attention_sum"), result: true },
      { sign: "→", label: copy, strip: this.vector("attention_norm", copy), length: this.length("attention_norm") },
    ]), this.matrix("attention_norm", "The same for all tokens", "vector", 1800), this.sample("hidden")];
  }

  drawFeedForward() {
    const { gated, norm_first: normFirst, normalised_output: normalised } = this.data;
    const before = this.vector("feed_forward_before", "widened");
    const after = this.vector("feed_forward_after", gated ? "after the activation, times the gate" : "after the activation");
    const vector = normFirst ? "normalised copy" : "vector";
    const rows = [
      { label: vector, strip: this.vector("attention_norm", vector), length: this.length("attention_norm") },
      { sign: "×", label: "widened", strip: before, length: this.length("feed_forward_before") },
      { sign: "→", label: gated ? "activated and gated" : "activated", strip: after, length: this.length("feed_forward_after") },
      { sign: "×", label: "brought back", strip: this.vector("feed_forward_output", "brought back"), length: this.length("feed_forward_output") },
      { sign: "+", label: normFirst ? "with the sum before the copy" : "with the vector above",
        strip: this.vector("feed_forward_sum", "sum"), length: this.length("feed_forward_sum") },
    ];
    if (normalised) {
      rows.push({ sign: "→", label: "normalised", strip: this.vector("feed_forward_norm", "normalised"), length: this.length("feed_forward_norm") });
    }
    rows[1].title = rows[2].title = "units inside the block";
    return [this.equation(rows), this.curve(before.cells.values), this.sample("hidden", "inner")];
  }

  // The activation function with the drawn units on it.
  curve(values) {
    const { x, y } = this.data.curve;
    const space = "http://www.w3.org/2000/svg";
    const draw = (tag, attributes) => {
      const element = document.createElementNS(space, tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      return element;
    };
    const [left, right] = [x[0], x[x.length - 1]];
    const across = (value) => 300 * (Math.min(Math.max(value, left), right) - left) / (right - left);
    const up = (value) => 150 - 32 * value;
    const at = (value) => {
      const place = (Math.min(Math.max(value, left), right) - left) / (right - left) * (x.length - 1);
      const low = Math.min(Math.floor(place), x.length - 2);
      return y[low] + (place - low) * (y[low + 1] - y[low]);
    };
    const figure = make("figure", "curve");
    const svg = draw("svg", { viewBox: "0 0 300 170", role: "img", "aria-label": "The activation function, with the drawn units on it" });
    svg.append(draw("path", { class: "axis", d: `M0 ${up(0)}H300M${across(0)} 12V165` }),
      draw("path", { class: "line", d: `M${x.map((value, index) => `${across(value).toFixed(1)} ${up(y[index]).toFixed(1)}`).join("L")}` }));
    [...values].forEach((value, index) => {
      const dot = draw("circle", { class: value < 0 ? "dot below" : "dot", r: 4, cx: across(value).toFixed(1), cy: up(at(value)).toFixed(1) });
      svg.append(dot);
      if (this.moving) {
        dot.animate([{ opacity: 0, transform: `translateY(${(up(0) - up(at(value))).toFixed(1)}px)` },
          { opacity: 1, transform: "none" }], { duration: 500, delay: 800 + index * 25, easing: EASE, fill: "backwards" });
      }
    });
    figure.append(svg, make("figcaption", "", `${percent(this.data.active[this.token])} of the inner units are above zero for “${this.word()}”.`));
    return figure;
  }

  drawLayers() {
    const { data, token } = this;
    const [count, size] = [data.tokens.length, data.units.hidden.length];
    const tower = make("div", "tower");
    const words = data.lens?.words[token];
    const last = words?.[data.layers];
    let stays = data.layers;
    while (words && stays > 0 && words[stays - 1] === last) stays -= 1;
    const beat = Math.min(220, 2600 / (data.layers + 1));
    const floors = [];
    for (let layer = 0; layer <= data.layers; layer++) {
      const floor = make("button", `floor${layer - 1 === data.layer ? " chosen" : ""}${words && layer >= stays ? " stays" : ""}`);
      floor.type = "button";
      const from = (layer * count + token) * size;
      const values = this.states.subarray(from, from + size);
      const name = layer ? `layer ${layer}` : "embeddings";
      floor.append(make("span", "name", layer || "emb."),
        this.paint(values, { name: `${this.word()} after ${name}`, units: data.units.hidden, width: data.widths.hidden, full: data.strips.state.full }));
      if (words) {
        const share = data.lens.shares[token][layer];
        const fill = make("i", "");
        fill.style.width = `${Math.max(100 * share, .5)}%`;
        const track = make("span", "track");
        track.append(fill);
        floor.append(make("span", "word", words[layer]), track, make("span", "share", percent(share)));
        if (this.moving) grow(fill, 300 + layer * beat);
      }
      floor.setAttribute("aria-label", `After ${name}${words ? `: ${words[layer]}, ${percent(data.lens.shares[token][layer])}` : ""}`);
      if (layer) floor.onclick = () => this.choose(layer - 1, data.head); else floor.disabled = true;
      this.arrive(floor, 200 + layer * beat, "translateY(16px)", 360);
      floors.push(floor);
    }
    tower.append(...floors.reverse());
    if (this.moving) {
      this.later.push(() => {
        const [top, bottom] = [tower.firstChild, tower.lastChild];
        const ghost = make("span", "climber", this.word());
        ghost.style.top = `${bottom.offsetTop}px`;
        tower.append(ghost);
        ghost.animate([{ transform: "none", opacity: 0 }, { opacity: 1, offset: .08 },
          { transform: `translateY(${top.offsetTop - bottom.offsetTop}px)`, opacity: 1, offset: .92 },
          { transform: `translateY(${top.offsetTop - bottom.offsetTop}px)`, opacity: 0 }],
        { duration: 300 + beat * (data.layers + 1), delay: 150, easing: "linear", fill: "both" }).onfinish = () => ghost.remove();
      });
    }
    const note = words
      ? `Marked at the left: from ${stays ? `layer ${stays}` : "the start"} on it says “${last}” to the end. A press on a floor chooses that layer.`
      : "A press on a floor chooses that layer.";
    return [tower, make("p", "sample", note), this.sample("hidden")];
  }

  // The last vector of the first token and what the pooler makes of it.
  summary() {
    const { data } = this;
    const { token, state, pooled } = data.summary;
    const about = { units: data.units.hidden, width: data.widths.hidden };
    const paint = (base64, name) => {
      const values = floats(base64);
      return this.paint(values, { ...about, name, full: greatest(values) });
    };
    const rows = [{ label: `last vector of ${token}`, strip: paint(state, `last vector of ${token}`) }];
    if (pooled) rows.push({ sign: "→", label: "pooled", strip: paint(pooled, "pooled"), result: true });
    return this.equation(rows);
  }

  bars(rows) {
    const box = make("div", "bars");
    box.append(...rows);
    return box;
  }

  drawPair() {
    const { data } = this;
    const names = data.steps[this.step] === "nsp" ? ["B follows A", "B does not follow A"] : ["in order", "swapped"];
    const rows = (data.pair ?? []).map((share, index) => this.bar(names[index], share, { delay: 900 + 200 * index,
      chosen: share === Math.max(...data.pair) }));
    return [this.summary(), this.bars(rows), this.sample("hidden")];
  }

  drawReplaced() {
    const { data, token } = this;
    return [this.bars(data.tokens.map((name, index) => this.bar(name, data.replaced[index],
      { delay: index * 60, chosen: index === token })))];
  }

  drawTask() {
    const { data, token } = this;
    const { kind, labels, values, is_probability: isShare } = data.task; // `values`: not for answers
    if (!isShare) {
      const box = make("div", "figure-number");
      box.append(make("b", "", signed(values[0])), make("span", "", labels[0]));
      return [kind === "choose" ? this.summary() : "", this.arrive(box, 500)];
    }
    if (kind === "answer") {
      return data.task.ends.flatMap(({ label, tokens }, place) => [make("h3", "", `The answer ${label} at`),
        this.bars(tokens.map(({ token: name, position, share }, index) => this.bar(name, share,
          { delay: 400 * place + 120 * index, chosen: index === 0, was: `position ${position}` })))]);
    }
    const shares = kind === "tag" ? values[token] : values;
    const order = [...shares.keys()].sort((one, other) => shares[other] - shares[one]).slice(0, 12);
    const rows = order.map((index, place) => this.bar(labels[index], shares[index], { delay: 300 + 120 * place, chosen: place === 0 }));
    const heading = kind === "tag" ? make("h3", "", `Labels of “${this.word()}”`) : "";
    const left = shares.length - order.length;
    return [heading, this.bars(rows), left ? make("p", "sample", `${left} less likely labels are not drawn.`) : ""];
  }

  drawWords() {
    const { data, token } = this;
    const predictions = data.mlm[token];
    const most = Math.max(predictions[0][1], .2);
    const rows = predictions.map(([word, share], index) => this.bar(word, share, { most, chosen: index === 0, delay: 900 + 150 * index }));
    const note = data.masked[token] ? ""
      : `“${this.word()}” is not masked, so the model may see it here. Choose a [MASK] above, or mask a word on Predict.`;
    return [this.equation([
      { label: `last vector at “${this.word()}”`, strip: this.vector("read", "last vector"), length: this.length("read") },
      { sign: "→", label: "transformed", strip: this.vector("transformed", "transformed"), length: this.length("transformed"), result: true },
    ]), this.bars(rows), make("p", "sample", note), this.sample("hidden", "embedding")];
  }
}

const DRAWINGS = { pieces: "drawPieces", embeddings: "drawEmbeddings", head: "drawHead", heads: "drawHeads",
  attention_norm: "drawNorm", feed_forward: "drawFeedForward", layers: "drawLayers", nsp: "drawPair", sop: "drawPair",
  replaced: "drawReplaced", task: "drawTask", mlm: "drawWords" };

export default inOrder(function ({ parentElement, data, send }) {
  const root = parentElement.querySelector(".walk");
  root.walk ??= new Walk(root);
  root.walk.take(data, send);
  const key = (event) => root.walk.key(event);
  window.addEventListener("keydown", key);
  return () => window.removeEventListener("keydown", key);
});
