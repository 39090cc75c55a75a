// What can be done, each as a form: its fields, what will happen, and the request it becomes.
// The dialog asks, shows `will`, and only then sends; the API decides who may.

import { pipelinePath, tablePath } from "./api.js";
import { count, plural, position } from "./format.js";

const DRY = { name: "dry_run", kind: "check", label: "Dry run: say what would be done, do nothing" };
const REASON = { name: "reason", kind: "text", label: "Reason", required: true, help: "It stands in the timeline." };
const OPTIONAL_REASON = { ...REASON, label: "Reason (optional)", required: false };
const IN_AUDIT = { help: "It stands in the audit trail." };

function tablesField(tables, chosen = tables.length === 1 ? tables : []) {
  return { name: "tables", kind: "tables", label: "Tables", options: tables.map((one) => one.table), value: chosen.map((one) => one.table) };
}

const named = (values) => (values.tables.length > 3 ? plural(values.tables.length, "table") : values.tables.join(", "));
const optional = (value) => (value ? value : null);

export function sweep(pipeline, tables, chosen) {
  return {
    title: "Sweep",
    path: `${pipelinePath(pipeline)}/snapshot`,
    pipeline,
    fields: [
      tablesField(tables, chosen),
      { name: "where", kind: "text", label: "Only these keys (optional)", placeholder: "id >= 100 and id < 200", help: "One table with one key column." },
      OPTIONAL_REASON,
      DRY,
    ],
    will: (values) => [
      `${named(values)} will be re-read ${values.where ? "for these keys" : "in full"} at one exact position.`,
      "The gate closes meanwhile: changes wait in the change log. Other tables go on.",
      "Readers see the present rows until the new ones are audited; then all of them at once.",
    ],
    body: (values) => ({ tables: values.tables, where: optional(values.where), reason: optional(values.reason), dry_run: values.dry_run }),
    verb: "Sweep",
  };
}

export function holdGate(pipeline, tables) {
  const open = tables.filter((one) => one.gate.state === "open");
  return {
    title: "Hold the gate",
    path: `${pipelinePath(pipeline)}/gates/hold`,
    fields: [tablesField(open), REASON],
    will: (values) => [`Changes of ${named(values)} stay in the change log until the gate is opened.`, "Capture goes on, and nothing is lost."],
    body: (values) => ({ tables: values.tables, reason: values.reason }),
    verb: "Hold",
    done: (values) => `${named(values)}: held.`,
  };
}

export function openGate(pipeline, tables) {
  const closed = tables.filter((one) => one.gate.state !== "open");
  const sweeping = closed.some((one) => one.gate.state === "sweeping");
  const abandon = { name: "abandon", kind: "check", label: "Also give up a sweep in progress; its branch is not published" };
  return {
    title: "Open the gate",
    path: `${pipelinePath(pipeline)}/gates/open`,
    fields: [tablesField(closed, tables.length > 1 && closed.length === tables.length ? closed : undefined), REASON, ...(sweeping ? [abandon] : [])],
    will: (values) => [
      `What waits for ${named(values)} is applied by the next run.`,
      values.abandon ? "A sweep in progress is given up: what it has read is thrown away." : "A sweep in progress is not overruled.",
    ],
    body: (values) => ({ tables: values.tables, reason: values.reason, ...(values.abandon ? { abandon: true } : {}) }),
    verb: "Open",
    done: (values) => `${named(values)}: open.`,
  };
}

export function verify(pipeline, tables, chosen) {
  return {
    title: "Verify",
    path: `${pipelinePath(pipeline)}/verify`,
    pipeline,
    fields: [
      tablesField(tables, chosen),
      { name: "sample", kind: "text", label: "Share of the keys (optional)", placeholder: "5%", help: "Or: changed, for what changed since every row was equal. Without it, what the pipeline's file says." },
      { name: "repair", kind: "check", label: "Repair: read the keys that differ again" },
      DRY,
    ],
    will: (values) => [
      `A cut is taken on the source; ${named(values)} will be brought to exactly that position and compared row by row.`,
      values.repair ? "Keys that differ are read again, through a branch." : "Rows are not changed by the comparison.",
    ],
    body: (values) => ({ tables: values.tables, sample: optional(values.sample), repair: values.repair, dry_run: values.dry_run }),
    verb: "Verify",
  };
}

export function maintain(pipeline, tables) {
  return {
    title: "Compact now",
    path: `${pipelinePath(pipeline)}/maintain`,
    pipeline,
    fields: [
      tablesField(tables),
      { name: "force", kind: "check", label: "Whether it is due or not", value: true },
      DRY,
    ],
    will: (values) => [
      `${values.force ? "Every step of upkeep" : "Upkeep that is due"} runs on ${named(values)}: compaction, manifests, expiry, orphan files.`,
      "Rows stay as they are. Old snapshots that expire cannot be rolled back to; ages are respected.",
    ],
    body: (values) => ({ tables: values.tables, force: values.force, dry_run: values.dry_run }),
    verb: "Compact",
  };
}

export function rollback(pipeline, status, snapshot) {
  return {
    title: "Roll back",
    path: `${tablePath(pipeline, status.table)}/rollback`,
    pipeline,
    danger: true,
    fields: [DRY],
    will: () => [
      `${status.table} goes back to snapshot ${snapshot.snapshot_id} (${count(snapshot.rows)} rows).`,
      `Its position goes back with it, to ${position(snapshot.position)}: the next apply replays the changes since.`,
      "To keep the old rows, hold the gate first.",
    ],
    body: (values) => ({ snapshot_id: snapshot.snapshot_id, dry_run: values.dry_run }),
    verb: "Roll back",
  };
}

export function setOffset(pipeline, status) {
  const path = `${pipelinePath(pipeline)}/offsets`;
  return {
    title: "Set the position",
    path,
    plan: `${path}/plan`,
    method: "PUT",
    pipeline,
    danger: true,
    fields: [
      { name: "position", kind: "text", label: "Position, or LSN", required: true, placeholder: "0/16B3748", help: `${status.table} stands at ${status.position || "none"}.` },
      { name: "skip", kind: "check", label: "Forward: leave out the changes in between for good" },
      { ...OPTIONAL_REASON, ...IN_AUDIT },
    ],
    will: (values, plan) => (plan ? moves(plan) : ["First a dry run: it says how many changes would be applied again or left out."]),
    // The answer that was shown holds only while the table stands where it stood.
    body: (values, plan) => ({ table: status.table, position: values.position.trim(), skip: values.skip, reason: optional(values.reason), expect: plan?.from_position ?? null }),
    verb: "Set the position",
  };
}

function moves(plan) {
  const follows = {
    replay: "The next apply takes them from there on. No row is touched until then.",
    skip: "The table differs from its source until it is swept.",
    none: "Nothing changes.",
  };
  return [`${plan.says}.`, `From \`${plan.from_position}\` to \`${plan.to_position}\`.`, follows[plan.direction]];
}

export function stop(pipeline) {
  return {
    title: "Stop the pipeline",
    path: `${pipelinePath(pipeline)}/stop`,
    danger: true,
    fields: [{ ...REASON, ...IN_AUDIT }],
    will: () => [
      `Nothing of ${pipeline} begins any more: no capture, no apply, no sweep. What is at work ends its batch.`,
      "The source keeps its log meanwhile, and its disk fills. To hold back single tables, hold their gates instead.",
    ],
    body: (values) => ({ reason: values.reason }),
    verb: "Stop",
    done: (values, answer) => (answer.changed ? `${pipeline}: stopped.` : `${pipeline} was stopped already.`),
  };
}

export function start(pipeline) {
  return {
    title: "Start the pipeline",
    path: `${pipelinePath(pipeline)}/start`,
    fields: [{ ...REASON, ...IN_AUDIT }],
    will: () => [`${pipeline} goes on from where it stands, with the next run of its schedule.`],
    body: (values) => ({ reason: values.reason }),
    verb: "Start",
    done: (values, answer) => (answer.changed ? `${pipeline}: started.` : `${pipeline} was running already.`),
  };
}

export function redrive(pipeline, table, letters) {
  return {
    title: "Redrive",
    path: `${pipelinePath(pipeline)}/dead-letters/redrive`,
    pipeline,
    fields: [DRY],
    will: () => [
      `${plural(letters.length, "letter")} of ${table} will be applied once more, in the order of the source.`,
      "What fails again stays a dead letter, with the new reason.",
    ],
    body: (values) => ({ tables: [table], event_ids: letters.map((letter) => letter.event_id), dry_run: values.dry_run }),
    verb: "Redrive",
  };
}

export function discard(pipeline, table, letter) {
  return {
    title: "Discard a dead letter",
    path: `${pipelinePath(pipeline)}/dead-letters/discard`,
    danger: true,
    fields: [],
    will: () => [`This change of ${table} will never be applied.`, "Other letters of the same row stay, and the next redrive applies them."],
    body: () => ({ tables: [table], event_ids: [letter.event_id] }),
    verb: "Discard",
    done: () => "Discarded.",
  };
}

export function approve(pipeline, held) {
  return {
    title: "Approve the schema",
    path: `${tablePath(pipeline, held.table)}/schema/approve`,
    fields: [
      { name: "renames", kind: "pairs", label: "Renamed columns (optional)", placeholder: "old=new", help: "One per line." },
      { name: "casts", kind: "pairs", label: "Columns that keep another lake type (optional)", placeholder: "amount=string", help: "One per line." },
      OPTIONAL_REASON,
      DRY,
    ],
    will: () => [
      `The lake follows schema ${held.schema_id} of ${held.table}, from ${position(held.first_used)} on.`,
      "The gate opens; what waits is applied by the next run. Rows before the change keep their meaning.",
    ],
    body: (values) => ({ renames: values.renames, casts: values.casts, reason: values.reason, dry_run: values.dry_run }),
    verb: "Approve",
    done: (values, answer) => approved(answer),
  };
}

function approved(answer) {
  const does = answer.statements.length ? answer.statements.join("\n") : "No column of the lake changes.";
  const next = answer.next_held ? `\nAnother change waits behind it: ${answer.next_held}` : "";
  return `${answer.dry_run ? "Would be done" : "Approved"}:\n${does}${next}`;
}
