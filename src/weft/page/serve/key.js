/* The dialog that asks for a key. */

import { make } from "./element.js";
import { say } from "./say.js";

// The key that a person gives, or an empty string; `again` where one was given that the server did not know.
export function askForKey(again) {
  const input = make("input", { id: "key", name: "key", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const form = make(
    "form",
    { method: "dialog" },
    make("h2", { id: "key-title" }, say("key-title")),
    make("p", {}, say(again ? "key-unknown" : "key-needed")),
    make("label", { for: "key" }, say("key")),
    input,
    make(
      "div",
      { class: "row" },
      make("button", { class: "main", value: "given" }, say("key-use")),
      make("button", { class: "plain", value: "", formnovalidate: true }, say("cancel")),
    ),
  );
  const dialog = make("dialog", { "aria-labelledby": "key-title" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "given" ? input.value.trim() : "");
    });
  });
}
