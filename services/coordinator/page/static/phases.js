// The phases of a stage's time, in the order in which they are stacked, each with a letter and a look.
import {s} from './dom.js';

export const PHASES = [
  {name: 'forward', letter: 'F', title: 'Forward', busy: true},
  {name: 'recompute', letter: 'R', title: 'Recompute', busy: true, pattern: true},
  {name: 'backward', letter: 'B', title: 'Backward', busy: true},
  {name: 'optimizer', letter: 'U', title: 'Optimizer', busy: true},
  {name: 'send', letter: 'S', title: 'Send', busy: true},
  {name: 'receive_wait', letter: 'N', title: 'Wait for network', pattern: true},
  {name: 'bubble', letter: 'W', title: 'Bubble (neighbour busy)', pattern: true},
  {name: 'data_wait', letter: 'D', title: 'Wait for data', pattern: true},
  {name: 'checkpoint', letter: 'C', title: 'Checkpoint', pattern: true},
  {name: 'idle', letter: 'I', title: 'Idle (outside steps)', pattern: true},
];

const UNKNOWN = {letter: '?', title: 'Other', pattern: false};
const BY_NAME = new Map(PHASES.map((phase) => [phase.name, phase]));

export function phaseOf(name) {
  return BY_NAME.get(name) || {...UNKNOWN, name};
}

/** What fills a drawn piece of a phase: a class for its colour, an attribute for its pattern. */
export function phaseFill(name) {
  const phase = phaseOf(name);
  return phase.pattern ? {class: `phase phase-${name}`, fill: `url(#pattern-${name})`}
                       : {class: `phase phase-${name} solid`};
}

export function swatch(attributes) {
  return s('svg', {class: 'swatch', width: 14, height: 14, 'aria-hidden': 'true'},
           s('rect', {width: 14, height: 14, rx: 3, ...attributes}));
}
