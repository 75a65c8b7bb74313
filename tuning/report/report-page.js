// Comfort only; the report is complete without it.
(() => {
  "use strict";

  // A tooltip that appears at once, instead of the browser's own after a second.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  for (const mark of document.querySelectorAll("[data-tip]")) {
    const title = mark.querySelector("title");
    if (!title) continue;
    const text = title.textContent;
    title.remove();
    const show = (event) => {
      tip.textContent = text;
      tip.hidden = false;
      const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      const y = event.clientY - tip.offsetHeight - 12;
      tip.style.left = `${Math.max(8, x)}px`;
      tip.style.top = `${y < 8 ? event.clientY + 16 : y}px`;
    };
    mark.addEventListener("pointerenter", show);
    mark.addEventListener("pointermove", show);
    mark.addEventListener("pointerleave", () => (tip.hidden = true));
  }

  // The variant under the pointer in the legend stands out in all charts; a click keeps it.
  let kept = null;
  const focusOn = (key) => {
    for (const series of document.querySelectorAll(".series"))
      series.classList.toggle("dim", key !== null && series.dataset.key !== key);
    for (const item of document.querySelectorAll("[data-legend]"))
      item.setAttribute("aria-pressed", String(item.dataset.legend === key));
  };
  for (const item of document.querySelectorAll("[data-legend]")) {
    item.setAttribute("role", "button");
    item.setAttribute("aria-pressed", "false");
    item.tabIndex = 0;
    const key = item.dataset.legend;
    const toggle = () => focusOn((kept = kept === key ? null : key));
    item.addEventListener("pointerenter", () => focusOn(key));
    item.addEventListener("pointerleave", () => focusOn(kept));
    item.addEventListener("click", toggle);
    item.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
  }

  // Copy buttons, where the browser allows copying.
  for (const figure of navigator.clipboard ? document.querySelectorAll("figure.code") : []) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(figure.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    figure.querySelector("figcaption").append(button);
  }

  // A link to a variant opens it; paper shows all of them.
  const openTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", openTarget);
  openTarget();
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
