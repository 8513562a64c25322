// Keeps the visitor's token in a cookie, so that the browser's next visit is the same visitor's.

export default inOrder(function ({ data }) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${data.cookie}=${data.token}; Path=/; Max-Age=${data.seconds}; SameSite=Strict${secure}`;
});
