// What the interactive parts are built from.

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// A slider over a list of values; `show` puts a value into words.
function slider(label, values, start, show, changed) {
  const input = html("input", { type: "range", min: 0, max: values.length - 1, step: 1, "aria-label": label });
  const output = html("output");
  const control = {
    element: html("label", { class: "slider" }, html("span", {}, label), output, input),
    input,
    get value() {
      return values[input.value];
    },
    set value(wanted) {
      const distances = values.map((value) => Math.abs(value - wanted));
      input.value = distances.indexOf(Math.min(...distances));
      tell();
    },
  };
  function tell() {
    output.textContent = show(control.value);
    input.setAttribute("aria-valuetext", output.textContent);
  }
  input.addEventListener("input", () => {
    tell();
    changed();
  });
  control.value = start;
  return control;
}

let choices = 0; // each row of buttons has a name of its own

// One of a few words, as a row of buttons; `options` is value → text.
function choice(label, options, start, changed) {
  const name = `choice-${(choices += 1)}`;
  const inputs = Object.keys(options).map((value) => html("input", { type: "radio", name, value }));
  const labels = inputs.map((input) => html("label", {}, input, html("span", {}, options[input.value])));
  const fieldset = html("fieldset", { class: "choice" }, html("legend", {}, label), html("div", {}, ...labels));
  inputs.find((input) => input.value === String(start)).checked = true;
  fieldset.addEventListener("change", changed);
  return {
    element: fieldset,
    get value() {
      return inputs.find((input) => input.checked).value;
    },
  };
}

function button(text, pressed) {
  const element = html("button", { type: "button" }, text);
  element.addEventListener("click", pressed);
  return element;
}

// Rows of name, bar and number; `set` takes {share, value, text} a row.
function bars(names) {
  const rows = names.map(({ name, colour }) => {
    const bar = html("i", { style: `background: ${colour}` });
    const text = html("output");
    return { name, bar, text, element: html("li", {}, html("span", {}, name), html("div", {}, bar), text) };
  });
  return {
    element: html("ul", { class: "weights" }, ...rows.map((row) => row.element)),
    set(values) {
      values.forEach(({ share, value, text }, i) => {
        rows[i].bar.style.width = `${100 * share}%`;
        rows[i].text.textContent = text;
        rows[i].element.dataset.value = value;
      });
    },
  };
}

// A number that stands out, with the words below it.
function fact(words) {
  const number = html("output");
  const element = html("div", { class: "fact" }, number, html("span", {}, words));
  return {
    element,
    set(value, text) {
      element.dataset.value = value;
      number.textContent = text;
    },
  };
}

const thousands = (n) => n.toLocaleString("en-US");
const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.001 ? 2 : 1)} %`;
const signed = (x, digits) => x.toFixed(digits).replace(/^-/, "−").replace(/^−(0\.?0*)$/, "$1");
