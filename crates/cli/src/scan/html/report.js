"use strict";
// Fills a session's steps in when one of its squares is clicked. Text from sessions is only ever set as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const el = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const words = { error: "failed", denied: "denied", cancelled: "cancelled", timeout: "timed out", running: "still running" };
  const names = { user: "user", harness: "harness", compact: "context compacted", result: "result", other: "usage" };

  const row = (step) => {
    const li = el("li", "step " + step.kind);
    li.dataset.step = step.step;
    const repeats = step.repeats;
    if (repeats) li.classList.add("repeats");
    const head = el("div", "who");
    head.append(el("span", "kind", step.kind === "turn" ? "turn " + step.turn : names[step.kind]));
    if (step.agent) head.append(el("span", "agent", step.agent));
    if (step.time) head.append(el("span", "time", step.time));
    if (step.outcome && words[step.outcome]) head.append(el("span", "outcome", words[step.outcome]));
    if (repeats) head.append(el("span", "again", "⟲ repeats"));
    li.append(head);
    const body = el("div", "body");
    if (step.text) body.append(el(step.kind === "result" ? "pre" : "p", "", step.text));
    for (const call of step.calls || []) {
      const line = el("pre", "call");
      line.append(el("b", "", call.tool), el("span", "", call.args ? "  " + call.args : ""));
      body.append(line);
    }
    if (step.action) {
      const { action, level, turn, message } = step.action;
      const mark = el("div", "deloop " + action);
      mark.append(el("b", "", "▲ deloop: " + action + " (level " + level + ") at turn " + turn));
      if (message) mark.append(el("p", "", message));
      body.append(mark);
    }
    li.append(body);
    return li;
  };

  const open = (button) => {
    const strip = button.closest(".strip");
    const panel = strip.closest(".session").querySelector(".steps");
    const steps = data[Number(strip.dataset.session)];
    if (!panel.firstChild) {
      const bar = el("div", "bar");
      const close = el("button", "close", "Close");
      close.type = "button";
      close.addEventListener("click", () => {
        panel.hidden = true;
        strip.querySelectorAll(".open").forEach((b) => b.classList.remove("open"));
        button.focus();
      });
      bar.append(el("span", "", "Steps around the loop"), close);
      const list = el("ol");
      for (const step of steps) {
        list.append(step.left_out ? el("li", "gap", "… " + step.left_out + " not shown") : row(step));
      }
      panel.append(bar, list);
    }
    panel.hidden = false;
    strip.querySelectorAll(".open").forEach((b) => b.classList.remove("open"));
    button.classList.add("open");
    panel.querySelectorAll(".here").forEach((n) => n.classList.remove("here"));
    const wanted = Number(button.dataset.step);
    const rows = [...panel.querySelectorAll("li[data-step]")];
    let target = rows.find((n) => Number(n.dataset.step) === wanted);
    const exact = Boolean(target);
    if (!target) target = rows.find((n) => Number(n.dataset.step) > wanted) || rows[rows.length - 1];
    if (target) {
      if (exact) target.classList.add("here");
      const list = panel.querySelector("ol");
      list.scrollTop = target.offsetTop - 12;
    }
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".strip button");
    if (button) open(button);
  });

  document.addEventListener("keydown", (event) => {
    const button = event.target.closest && event.target.closest(".strip button");
    if (!button) return;
    const to = { ArrowRight: button.nextElementSibling, ArrowLeft: button.previousElementSibling }[event.key];
    if (!to) return;
    event.preventDefault();
    button.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
    if (!to.closest(".session").querySelector(".steps").hidden) open(to);
  });

  const filter = document.getElementById("filter");
  if (filter) {
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const card of document.querySelectorAll(".session")) {
        card.hidden = wanted !== "" && !card.querySelector(".head").textContent.toLowerCase().includes(wanted);
      }
    });
  }
})();
