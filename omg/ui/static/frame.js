// In the frame of OpenClaw's Control UI no form may be sent: its fields become the address.
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
