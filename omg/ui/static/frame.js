// A frame in OpenClaw's Control UI may send no form, so the fields of a form become an address.
const open = (form) => location.assign(`${form.action}?${new URLSearchParams(new FormData(form))}`);
document.addEventListener("click", (event) => {
  const button = event.target.closest("form button");
  if (!button) return;
  event.preventDefault();
  open(button.form);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("form input")) return;
  event.preventDefault();
  open(event.target.form);
});
// The frame may change nothing: a button copies a command and asks the Control UI for a chat, where the person sends the command.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-command]");
  if (!button) return;
  event.preventDefault();
  const field = document.body.appendChild(document.createElement("textarea"));
  field.value = button.dataset.command;
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) button.textContent = button.dataset.command; // to be copied by hand
  else parent.postMessage({ type: "openclaw-plugin-session-open", sessionKey: document.body.dataset.session }, location.origin);
});
