// What the last evaluation measured of each class, as a table: a curve for each would be too many.
import {part, updateTable} from './dom.js';
import {isOfAClass, measureText, measureValue} from './format.js';

/** Rows [class, number or '–' for each measure], and the names of the measures, of "accuracy/3" and the like. */
export function classTable(measures) {
  const names = [];
  const classes = new Map();
  for (const {name, value} of measures.filter((measure) => isOfAClass(measure.name))) {
    const [measure, number] = name.split('/');
    if (!names.includes(measure)) names.push(measure);
    if (!classes.has(number)) classes.set(number, new Map());
    classes.get(number).set(measure, measureValue(name, value));
  }
  const rows = [...classes.keys()].sort((a, b) => a - b).map((number) => [number, ...names.map((name) => classes.get(number).get(name) || '–')]);
  return {names, rows};
}

export function updateClasses(root, store) {
  const {names, rows} = classTable(store.job?.evaluation_measures || []);
  const host = part(root, 'classes');
  host.hidden = rows.length === 0;
  if (host.hidden) return;
  const columns = names.map((name) => ({title: measureText(name).replace(/^./, (letter) => letter.toUpperCase()), number: true}));
  updateTable(part(root, 'classes-table'), 'Classes in the last evaluation', [{title: 'Class'}, ...columns], rows, '');
}
