// The next-sentence score: how likely B is what came after A.

export default function ({ parentElement, data }) {
  const root = parentElement.querySelector(".gauge");
  const yes = 100 * data.is_next;
  const shown = (value) => (value > 99.95 && value < 100 ? "> 99.9" : value.toFixed(1));
  root.querySelector(".verdict").textContent = yes >= 50 ? "B follows A" : "B does not follow A";
  root.querySelector(".number").textContent = `${shown(Math.max(yes, 100 - yes))}%`;
  root.querySelector(".left").textContent = `IsNext ${shown(yes)}%`;
  root.querySelector(".right").textContent = `NotNext ${shown(100 - yes)}%`;
  const track = root.querySelector(".track");
  track.style.setProperty("--yes", `${yes}%`);
  track.setAttribute("aria-valuenow", yes.toFixed(1));
  track.setAttribute("aria-valuetext", `IsNext ${yes.toFixed(1)} percent`);
}
