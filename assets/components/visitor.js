// Keeps the visitor's token in a cookie, so that the browser's next visit is the same visitor's. If another tab has kept
// one since this visit began, this visit takes that one, so that what either has started belongs to the same visitor.

export default inOrder(function ({ data, send }) {
  const known = document.cookie.match(`(?:^|; )${data.cookie}=([0-9a-f]{32})(?:;|$)`)?.[1];
  if (data.may_adopt && known && known !== data.token) {
    send("known", known);
    return;
  }
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${data.cookie}=${data.token}; Path=/; Max-Age=${data.seconds}; SameSite=Strict${secure}`;
});
