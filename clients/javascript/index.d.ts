export type Label = string | number;
export type DataRecord = string | { [field: string]: unknown } | number[];

/** A label, and what it means, in the form of a record. */
export interface DescribedLabel {
  name: Label;
  description?: DataRecord | null;
}

export interface Decision {
  id: string;
  label: Label;
  /** The probability with which this label was chosen. */
  probability: number;
  /** The learner's own estimate of the probability that the label is right. */
  confidence: number | null;
  record: DataRecord;
  among: Label[] | null;
}

export interface DecideOptions {
  /** The labels on offer; by default all that are not retired. */
  among?: Iterable<Label>;
  /** The choice of the product, if the model is its apprentice. */
  chosen?: Label;
  /** The probability with which the product chose it, if it has one. */
  chosenProbability?: number;
  /** Whether another label than the best guess may be chosen; by default it may. */
  explore?: boolean;
}

/** Whether the label was right, or the right label; null if it is none of them. */
export type Feedback =
  | { correct: boolean; truth?: undefined; reward?: undefined }
  | { truth: Label | null; correct?: undefined; reward?: undefined }
  /** A fraction of right, from 0 to 1. */
  | { reward: number; correct?: undefined; truth?: undefined };

export interface ApprenticeSettings {
  decides?: "product" | "model";
  share?: number;
  confidence?: number | null;
}

export interface Explanation {
  label: Label;
  against: Label;
  /** That each of them is right; null if the learner has no such model. */
  probabilities: [number, number] | null;
  difference: number;
  /** The amounts add up to the difference of the scores: positive ones speak for the label. */
  reasons: { text: string; amount: number }[];
}

/** What the service says of a model; see `/openapi.json`. */
export type Details = { [field: string]: any };

/** The service failed, or cannot be reached; the status is null without an answer. */
export class ServiceError extends Error {
  readonly status: number | null;
}

/** The service refused what was asked: contradicting feedback, an unknown id, a label twice. */
export class RefusedError extends ServiceError {}

/** A model of a service. A request without an answer is repeated with the same ids, so it counts once. */
export class Client {
  readonly model: string;
  constructor(url: string, model: string, options?: { key?: string | null; timeout?: number });

  decide(record: DataRecord, options?: DecideOptions & { id?: string }): Promise<Decision>;
  decideMany(records: DataRecord[], options?: DecideOptions & { ids?: string[] | null }): Promise<Decision[]>;
  /** Why one label scores higher than another one, by what the model knows now. */
  explain(record: DataRecord, options?: { label?: Label; against?: Label; among?: Label[] }): Promise<Explanation>;
  learn(decision: Decision | string, feedback: Feedback): Promise<void>;
  /** Sends feedback in place of what was sent before, as if it had been sent then. */
  revise(decision: Decision | string, feedback: Feedback): Promise<void>;
  /** Withdraws the feedback for a decision, as if it had never been sent. */
  withdraw(decision: Decision | string): Promise<void>;
  learnMany(decisions: (Decision | string)[], feedback: Feedback[]): Promise<void>;

  make(labels: (Label | DescribedLabel)[], spec?: { [field: string]: unknown }): Promise<this>;
  show(): Promise<Details>;
  /** How the model does, and what to do about it; times in seconds since 1970. */
  report(range?: { since?: number; until?: number }): Promise<Details>;
  newest(limit?: number): Promise<Details[]>;
  addClasses(classes: (Label | DescribedLabel)[]): Promise<this>;
  /** Say what labels mean. */
  describe(labels: DescribedLabel[]): Promise<this>;
  retireClasses(classes: Label[]): Promise<this>;
  freeze(): Promise<this>;
  unfreeze(): Promise<this>;
  expire(seconds: number | null, countsAs?: "nothing" | "wrong"): Promise<this>;
  /** Of any 1,000 decisions, at most this share is another label than the best guess; null is no limit. */
  setLimits(limits: { maxExploration?: number | null; maxNewShare?: number | null }): Promise<this>;
  apprentice(settings: ApprenticeSettings | null): Promise<this>;
  /** Erases decisions with their feedback: by ids, by a field of the record, or before a time. */
  erase(
    selection: { ids: string[] } | { field: string | string[]; value: unknown } | { before: number },
  ): Promise<{ decisions: number; rows: number }>;
  delete(): Promise<void>;

  addShadow(name: string, learner?: string, parameters?: { [name: string]: unknown }): Promise<this>;
  removeShadow(name: string): Promise<void>;
  promote(name: string): Promise<this>;

  /** The log, a row a line. */
  exportLog(): Promise<string>;
  importLog(lines: string): Promise<this>;
}
