// The one convenience that needs a script: "/" goes to the search.
document.addEventListener("keydown", (event) => {
  const search = document.getElementById("search");
  const isTyping = event.target.closest("input, textarea, select");
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});
