/** The words of this page that need explaining: one dictionary. See `explain.js`. */

/** @type {Object<string, [string, string]>} by name: a title, and what it means */
const TEXTS = {
  accuracy: [
    "Accuracy",
    `Each new row is first given a label by what was learned so far, then learned. Accuracy
      is the share that was given the right one: an honest figure without a test set. Rows
      of a label that had not been learned yet do not count; of the first 1,000 labelled
      rows all are scored, later one in 16.`,
  ],
  asymmetric: [
    "Asymmetric distance",
    `Compares the query's exact values, not only their signs, with an entry's bits. Smaller
      is nearer.`,
  ],
  bits: [
    "Bits that agree",
    `Query and entry are compared bit by bit: tall bits agree, low ones differ, a thin line
      is inactive, which means that it belongs to another cycle.`,
  ],
  codeword: [
    "Codeword",
    `The bits a label was given when it first came. They never change; what is learned are
      functions that give the rows of a label its codeword.`,
  ],
  cycle: [
    "Cycle",
    `A group of labels that share the same hash functions. When a group is full, the next
      new label opens another cycle with functions of its own, so older codewords stay as
      they are.`,
  ],
  entries: ["Entry", `A row that was added and can be found, with its id, labels and payload.`],
  file: [
    "File",
    `The size of the collection's file. New entries wait in a log beside it, which is not
      counted.`,
  ],
  flipped: ["Flipped", `Bits that a refresh found to be different now.`],
  guess: [
    "Taken for",
    `This entry has no label. That is the label it most likely belongs to, by what was
      learned.`,
  ],
  hamming: ["Hamming distance", `The number of bits in which query and entry differ.`],
  home: [
    "Home",
    `An entry without a label keeps its bits in one cycle only: that whose labels fit it
      best.`,
  ],
  inactive: ["Inactive", `A bit of another cycle: it says nothing about this label.`],
  label: ["Label", `A name that rows share. Each has a codeword.`],
  lesson: ["Rows learned", `Rows with a label that have taught the hash functions.`],
  likeness: [
    "Likeness",
    `How alike two rows are, whatever was learned: the cosine of the angle between them. 1
      is the same direction, 0 unrelated.`,
  ],
  meaning: [
    "Meaning",
    `The probability that an entry has the label of the query, by what was learned. Entries
      that are equally likely are ordered by likeness.`,
  ],
  novelty: [
    "Novelty",
    `The share of the rows that came so far which resembled one of the labels more than
      this query does. Of rows like those that came, one in twenty is above 95 % too: a
      hint, no proof. By likeness you see what resembles the query.`,
  ],
  published: [
    "Published",
    `Hash functions are solved anew when enough rows have come, and all at once put to use.
      Rows that came after that wait for the next time.`,
  ],
  readonly: ["Read-only", `This server only reads: nothing can be labelled or refreshed here.`],
  refresh: [
    "Refresh",
    `Computes stale bits again. It happens by itself after functions were published; the
      button does so at once.`,
  ],
  relevance: [
    "Relevance",
    `The probability that an entry has the label of the query, whether that was learned or
      not: meaning and likeness are judged together, and so is what the nearest entries have
      in common.`,
  ],
  stale: [
    "Stale",
    `A stored bit of an entry without a label that is older than the hash function that
      made it. Entries with a label never go stale: they stand under its codeword.`,
  ],
  unlabelled: ["Unlabelled", `Entries without a label. They are found by bits of their own.`],
  width: ["Width", `The bits of all cycles together. An entry keeps those of one cycle.`],
};

/** The same, with texts in a line. @type {Object<string, [string, string]>} */
export const WORDS = Object.fromEntries(
  Object.entries(TEXTS).map(([name, [title, text]]) => [name, [title, text.replace(/\s+/g, " ")]]),
);
