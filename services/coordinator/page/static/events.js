// What happened to the job, newest first.
import {h, part, setText} from './dom.js';
import {clock, integer} from './format.js';

const SHOWN = 100;

export class Events {
  constructor(root, store) {
    this.host = part(root, 'events');
    this.note = part(root, 'events-note');
    this.store = store;
    this.version = -1;
  }

  update() {
    const series = this.store.series;
    if (series.version === this.version && series === this.series) return;
    this.series = series;
    this.version = series.version;
    const events = series.events.slice(-SHOWN).reverse();
    setText(this.note, series.events.length > SHOWN ? `the last ${SHOWN}` : '');
    const key = events.length > 0 ? `${events.length}:${events[0].time}:${events[0].text}` : '';
    if (key === this.key) return;
    this.key = key;
    this.host.replaceChildren(events.length === 0 ? h('p', {class: 'note'}, 'Nothing yet.') :
      h('ol', {class: 'events'}, events.map((event) => h('li', {'data-kind': event.kind},
        h('time', {datetime: new Date(event.time * 1000).toISOString()}, clock(event.time)),
        h('span', {class: 'event-step'}, integer(event.step)),
        h('span', {class: 'event-text'}, event.text)))));
  }
}
