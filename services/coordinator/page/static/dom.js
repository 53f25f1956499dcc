// Making and changing elements. Text always goes in as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) {
      node.addEventListener(key.slice(2), value);
    } else {
      node.setAttribute(key, value === true ? '' : value);
    }
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child);
  }
  return node;
}

/** An HTML element: h('td', {class: 'number'}, 'text', otherElement). */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Writes only what changed, so that selections and screen readers are left alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Likewise for attributes; null removes. */
export function setAttribute(node, name, value) {
  if (value === null) {
    node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

/** The element marked data-part=NAME in a view. */
export function part(root, name) {
  return root.querySelector(`[data-part="${name}"]`);
}

/**
 * A table whose cells change in place: rows are kept by position, cells by column, so focus inside survives.
 * columns: [{title, number}], rows: [[text or node or {text, class, field, value}, ...], ...].
 */
export function updateTable(host, caption, columns, rows, empty) {
  let table = host.querySelector('table');
  if (!table) {
    table = h('table', {}, h('caption', {class: 'hidden'}, caption), h('thead', {}, h('tr')), h('tbody'));
    host.replaceChildren(table);
  }
  const head = table.tHead.rows[0];
  if (head.dataset.columns !== columns.map((column) => column.title).join('|')) {
    head.replaceChildren(...columns.map((column) =>
      h('th', {scope: 'col', class: column.number ? 'number' : null}, column.title)));
    head.dataset.columns = columns.map((column) => column.title).join('|');
    table.tBodies[0].replaceChildren();
  }
  const body = table.tBodies[0];
  if (rows.length === 0) {
    body.replaceChildren(h('tr', {class: 'empty'}, h('td', {colspan: columns.length}, empty)));
    return;
  }
  if (body.rows[0] && body.rows[0].className === 'empty') body.replaceChildren();
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, index) => {
    const line = body.rows[index] || body.insertRow();
    row.forEach((cell, column) => {
      const old = line.cells[column] || line.appendChild(h(column === 0 ? 'th' : 'td', column === 0 ? {scope: 'row'} : {}));
      const value = cell !== null && typeof cell === 'object' && !(cell instanceof Node) ? cell : {text: cell};
      const classes = [columns[column].number ? 'number' : '', value.class || ''].join(' ').trim();
      setAttribute(old, 'class', classes || null);
      setAttribute(old, 'data-field', value.field ?? null);
      setAttribute(old, 'data-value', value.value ?? null);
      if (value.text instanceof Node) {
        if (!old.firstChild || !old.firstChild.isEqualNode || !old.firstChild.isEqualNode(value.text)) {
          old.replaceChildren(value.text);
        }
      } else {
        setText(old, String(value.text ?? ''));
      }
    });
  });
}

/** Radio buttons that look like one switch. */
export function fillSegmented(fieldset, name, options, chosen, onchange) {
  for (const [value, label] of options) {
    fieldset.append(h('label', {}, h('input', {type: 'radio', name, value, checked: value === chosen,
                                               onchange: () => onchange(value)}), h('span', {}, label)));
  }
}
