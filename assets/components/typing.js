// Typing in the text fields. Enter applies the text, Shift+Enter starts a new line. What was typed and not applied dims
// the results below it, and a reload of the page gives it back.

// A browser may deny its storage, or have no room: then no draft is kept.
const stored = (use) => { try { return use(sessionStorage); } catch { return null; } };

export default inOrder(function ({ data }) {
  const fields = data.keys.map((key) => `.st-key-${key} textarea`).join();
  const page = document.querySelector(".stMainBlockContainer");
  const listening = new AbortController();
  const on = (type, act) => document.addEventListener(type, (event) => {
    if (event.target.matches?.(fields)) act(event.target, event);
  }, { capture: true, signal: listening.signal });
  const drafts = (field) => `draft ${field.getAttribute("aria-label")} ?`;
  const draft = (field) => drafts(field) + location.search.slice(1);

  on("input", (field) => {
    page?.setAttribute("data-typing", "");
    stored((storage) => storage.setItem(draft(field), field.value));
  });
  on("focusout", (field) => {
    page?.removeAttribute("data-typing");
    // The address may have changed since the field was typed in: the drafts under all addresses go.
    stored((storage) => Object.keys(storage).filter((key) => key.startsWith(drafts(field)))
      .forEach((key) => storage.removeItem(key)));
  });
  on("keydown", (field, event) => {
    // The Enter that ends a word of an input method: Safari tells it by the code 229 alone.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    event.stopPropagation();
    field.blur(); // Streamlit applies a text when its field is left
    field.focus();
  });
  // A field may be drawn after this component, or drawn anew.
  const seen = new WeakSet();
  const giveBack = () => document.querySelectorAll(fields).forEach((field) => {
    if (seen.has(field)) return;
    seen.add(field);
    const kept = stored((storage) => storage.getItem(draft(field)));
    if (kept === null || kept === field.value || field.matches(":focus")) return;
    field.focus();
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, kept);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const drawn = new MutationObserver(giveBack);
  drawn.observe(page ?? document.body, { childList: true, subtree: true });
  giveBack();
  return () => {
    listening.abort();
    drawn.disconnect();
    page?.removeAttribute("data-typing"); // the field may leave with this component, and tells nothing then
  };
});
