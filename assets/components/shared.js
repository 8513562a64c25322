// Put in front of every component's own script.

function decode(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Calls back when the width changes, and only then: what is drawn sets the height itself.
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

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A light ink stands on a dark page.
function isDark(ink) {
  const [red, green, blue] = (ink.match(/[\d.]+/g) ?? [0, 0, 0]).map(Number);
  return red + green + blue > 384;
}
