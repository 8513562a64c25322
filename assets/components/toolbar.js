// A heading with a row of small controls at its right, or such a row alone.

export default inOrder(function ({ parentElement, data, send }) {
  parentElement.querySelector("h2").textContent = data.heading;
  drawControls(parentElement.querySelector(".controls"), data.controls, send);
});
