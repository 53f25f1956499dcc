// The job's settings in words: what was asked for, as the coordinator filled it in.
import {h, part} from './dom.js';
import {integer, num, scientific} from './format.js';
import {hasEnded, pipelineStages} from './job_facts.js';

const NOT_SAID = '–';
const PATHS = ['train', 'masks', 'folder', 'images'];  // of data in folders and files, see docs/job_files/data.md

/** The kind of a part of the spec and its fields, as the coordinator tells them. */
function kindOf(kinds) {
  return Object.entries(kinds || {}).find(([kind]) => kind !== 'objective') || ['', {}];
}

function words(name) {
  return name ? name.replaceAll('_', ' ') : NOT_SAID;
}

function list(texts) {
  return texts.filter(Boolean).join(', ');
}

function enumText(value, prefix) {
  return words(String(value || '').replace(prefix, '').toLowerCase());
}

export function scheduleText(spec) {
  return enumText(spec?.pipeline?.schedule, 'SCHEDULE_KIND_');
}

export function precisionText(spec) {
  return enumText(spec?.precision, 'PRECISION_');
}

/** Reals are numbers, 64-bit integers strings. */
function valueText(value) {
  if (Array.isArray(value)) return `[${value.join(', ')}]`;
  return value === true ? '' : typeof value === 'number' ? scientific(value) : value;
}

function isSet(value) {
  return value === true || (Array.isArray(value) ? value.length > 0 : num(value) > 0);
}

/** The fields that are set, as "depth 8, nesterov". */
function fieldsText(fields) {
  // The coordinator fills in groups for every ResNet; batch normalization has none.
  const unused = fields.norm === 'RESNET_NORM_BATCH' ? 'groups' : '';
  return list(Object.entries(fields).filter(([name, value]) => name !== unused && isSet(value))
    .map(([name, value]) => `${words(name)} ${valueText(value)}`.trim()));
}

export function modelText(spec) {
  const [kind, {layers, width}] = kindOf(spec?.model);
  const count = Array.isArray(layers) ? layers.length : num(layers);
  const by = num(width) > 0 ? ` × ${width}` : '';
  return list([words(kind), count > 0 ? `${count} layers${by}` : '']);
}

function modelDetail(spec) {
  const [, model] = kindOf(spec?.model);
  const {layers, width, ...rest} = model;
  const [objective, fields] = kindOf(spec?.model?.objective);
  const aim = objective && list([words(objective), fieldsText(fields)]);
  return [fieldsText(layers === undefined ? model : rest), aim].filter(Boolean).join('; ');
}

function batch(spec) {
  const training = spec?.training || {};
  const sequences = num(training.batch_size);
  const micro = num(training.micro_batches);
  const [, model] = kindOf(spec?.model);
  const tokens = sequences * num(model.context);
  return [`${integer(sequences)} ${(model.image || []).length > 0 ? 'images' : 'sequences'}`,
          list([micro > 0 ? `M = ${integer(micro)} micro-batches of ${Number((sequences / micro).toFixed(1))}` : '',
                tokens > 0 ? `${integer(tokens)} tokens` : ''])];
}

function optimizer(spec) {
  const [kind, fields] = kindOf(spec?.training?.optimizer);
  const clip = num(spec?.training?.gradient_clip_norm);
  const clipping = clip > 0 ? `clip at norm ${scientific(clip)}` : 'no clipping';
  return [words(kind), list([fieldsText(fields), clipping])];
}

function learningRate(spec) {
  const [kind, {peak, ...rest}] = kindOf(spec?.training?.learning_rate);
  return kind ? [`${scientific(peak)} ${words(kind)}`, fieldsText(rest)] : [NOT_SAID, ''];
}

function data(spec) {
  const [kind, fields] = kindOf(spec?.data);
  const {path} = fields;
  if (path) return [path.split('/').pop(), path.includes('/') ? path : 'bytes as tokens'];
  return [words(kind), PATHS.flatMap((name) => fields[name] || []).join(', ')];
}

function epochs(count) {
  return `every ${num(count) === 1 ? 'epoch' : `${num(count)} epochs`}`;
}

function every(steps, what) {
  return num(steps) > 0 ? `every ${integer(steps)} steps` : what;
}

function saving(spec) {
  const checkpoint = spec?.checkpoint || {};
  const evaluation = spec?.evaluation || {};
  return [every(checkpoint.every_steps, num(checkpoint.every_epochs) > 0 ? epochs(checkpoint.every_epochs)
            : checkpoint.never ? 'at the last step' : 'every 3 minutes or more'),
          num(evaluation.every_steps) > 0 ? `evaluation every ${integer(evaluation.every_steps)} steps`
             : num(evaluation.every_epochs) > 0 ? `evaluation ${epochs(evaluation.every_epochs)}` : 'no evaluation'];
}

function pipeline(spec, stages) {
  const {rematerialization, partition, stages: asked} = spec?.pipeline || {};
  const kept = enumText(rematerialization, 'REMATERIALIZATION_');
  const cuts = (partition?.cuts || []).length > 0 ? `cuts ${partition.cuts.join(', ')}`
    : `${enumText(partition?.rule, 'PARTITION_RULE_')} partition`;
  const fewer = num(asked) > 0 && stages > 0 && num(asked) !== stages ? ` of ${asked}` : '';
  return [`${scheduleText(spec)}, K = ${stages > 0 ? stages : num(asked) > 0 ? asked : 'all free'}${fewer}`,
          `rematerialize ${kept}, ${cuts}`];
}

/** [[name, title, value, detail], ...] of a Job, in the order in which they are shown. */
export function settingsOf(job) {
  const {spec} = job;
  const {resume} = spec || {};
  const from = resume?.job ? `from ${resume.job}${resume.step === undefined ? '' : `, step ${integer(resume.step)}`}` : '';
  return [
    ['model', 'Model', modelText(spec), modelDetail(spec)],
    ['data', 'Data', ...data(spec)],
    ['batch', 'Batch', ...batch(spec)],
    ['optimizer', 'Optimizer', ...optimizer(spec)],
    ['learning_rate', 'Learning rate', ...learningRate(spec)],
    ['pipeline', 'Schedule', ...pipeline(spec, pipelineStages(job))],
    ['precision', 'Precision', precisionText(spec), [`seed ${spec?.seed ?? NOT_SAID}`, from].filter(Boolean).join(', ')],
    ['saving', 'Checkpoints', ...saving(spec)],
  ];
}

/** The panel, and for a job that succeeded where its weights are. */
export class Settings {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.key = '';
  }

  update() {
    const {job} = this.store;
    if (!job) return;
    const result = hasEnded(job) ? [job.weights_folder, job.weights_digest] : [];
    const rows = settingsOf(job);
    const key = JSON.stringify([rows, result]);
    if (key === this.key) return;
    this.key = key;
    part(this.root, 'settings').replaceChildren(...rows.map(([name, title, value, detail]) =>
      h('div', {'data-setting': name}, h('dt', {}, title),
        h('dd', {}, h('span', {class: 'setting', title: value}, value), h('span', {class: 'hint', title: detail}, detail)))));
    const [folder, digest] = result;
    const host = part(this.root, 'result');
    host.hidden = !folder && !digest;
    host.replaceChildren(...[['Weights', folder, 'weights_folder'], ['Digest', digest, 'weights_digest']].filter(([, value]) => value)
      .map(([title, value, field]) => h('div', {}, h('dt', {}, title), h('dd', {class: 'mono', 'data-field': field, 'data-value': value}, value))));
  }
}
