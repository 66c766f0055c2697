// Keeps an open page up to date: the server says that something changed, and the page's content is fetched again.
// Nothing depends on it; without it a page is as old as its last load.
"use strict";

const source = document.currentScript.dataset.live;
const state = () => document.getElementById("live");
let isFetching = false;

// Whoever types, or has chosen text, is not disturbed.
function isBusy() {
  const field = document.activeElement;
  const types = field && field.matches("input:not([type=hidden]), textarea, select") && field.value !== field.defaultValue;
  return types || String(document.getSelection()) !== "";
}

async function refresh() {
  if (isFetching || isBusy()) return;
  isFetching = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    replaceContent(next.getElementById("content"));
  } catch {
    // The server is gone for a moment; the next change brings it up to date.
  } finally {
    isFetching = false;
  }
}

function replaceContent(next) {
  const content = document.getElementById("content");
  if (!next || content.innerHTML === next.innerHTML) return;
  const open = [...content.querySelectorAll("details[open][id]")].map((element) => element.id);
  const focused = document.activeElement && document.activeElement.id;
  content.replaceChildren(...next.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

const events = new EventSource(source);
events.addEventListener("changed", refresh);
events.addEventListener("open", () => { state().textContent = "live"; });
events.addEventListener("error", () => { state().textContent = "offline"; });
addEventListener("pagehide", () => events.close());
