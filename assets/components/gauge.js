// The score of a pair: how likely B is what came after A, or that the two are in their order.

const WORDS = {
  next: ["B follows A", "B does not follow A", "IsNext", "NotNext", "Probability that B follows A"],
  order: ["In order", "Swapped", "In order", "Swapped", "Probability that A and B are in order"],
};

export default function ({ parentElement, data }) {
  const root = parentElement.querySelector(".gauge");
  const yes = 100 * data.is_next;
  const [follows, not, left, right, label] = WORDS[data.order ? "order" : "next"];
  const shown = (value) => (value > 99.95 && value < 100 ? "> 99.9" : value.toFixed(1));
  root.querySelector(".verdict").textContent = yes >= 50 ? follows : not;
  root.querySelector(".number").textContent = `${shown(Math.max(yes, 100 - yes))}%`;
  root.querySelector(".left").textContent = `${left} ${shown(yes)}%`;
  root.querySelector(".right").textContent = `${right} ${shown(100 - yes)}%`;
  const track = root.querySelector(".track");
  track.style.setProperty("--yes", `${yes}%`);
  track.setAttribute("aria-valuenow", yes.toFixed(1));
  track.setAttribute("aria-label", label);
  track.setAttribute("aria-valuetext", `${left} ${yes.toFixed(1)} percent`);
}
