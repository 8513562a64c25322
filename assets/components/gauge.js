// The score of a pair: the probability that B follows A, or that the texts are in order.

const WORDS = {
  next: ["B follows A", "B does not follow A", "IsNext", "NotNext", "Probability that B follows A"],
  order: ["In order", "Swapped", "In order", "Swapped", "Probability that A and B are in order"],
};

// A probability this close to one half is no verdict.
const UNDECIDED = .1;

export default inOrder(function ({ parentElement, data }) {
  const root = parentElement.querySelector(".gauge");
  const yes = data.is_next;
  const [follows, not, left, right, label] = WORDS[data.order ? "order" : "next"];
  root.querySelector(".verdict").textContent = Math.abs(yes - .5) < UNDECIDED ? "Undecided" : yes > .5 ? follows : not;
  root.querySelector(".number").textContent = percent(Math.max(yes, 1 - yes));
  root.querySelector(".left").textContent = `${left} ${percent(yes)}`;
  root.querySelector(".right").textContent = `${right} ${percent(1 - yes)}`;
  const track = root.querySelector(".track");
  track.style.setProperty("--yes", `${100 * yes}%`);
  track.setAttribute("aria-valuenow", (100 * yes).toFixed(1));
  track.setAttribute("aria-label", label);
  track.setAttribute("aria-valuetext", `${left} ${percent(yes)}`);
});
