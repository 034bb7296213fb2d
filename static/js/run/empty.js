// Why there is no curve: the sum of operators wants a figure of each.

import { short } from "../format.js";

const NAMED = 3;
const LONG = 40; // characters of a name

export function empty(state) {
  const missing = state.operators.filter(({ best }) => !best), open = missing.filter((operator) => !operator.given_up);
  const begins = "The curve begins when every operator was measured once";
  if (["done", "failed"].includes(state.run.state) && (open.length || !state.operators.length)) {
    return `There is no curve: the run ended before it measured ${open.length ? named(open) : "any operator"}.`;
  }
  if (!missing.length) return `${begins}.`;
  if (open.length) return `${begins}; not yet: ${named(open)}.`;
  const without = `There is no sum of operators to draw: nothing that was tried of ${named(missing)} ran.`;
  return state.measured ? `${without} A library has plain loops there.` : without;
}

/** As nodes: a long name is broken where one of its words ends. */
export function breakable(text) {
  return text.split(/(?<=_)/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

function named(operators) {
  const names = operators.slice(0, NAMED).map(({ index, name }) => `#${index} ${short(name).slice(0, LONG)}`).join(", ");
  return operators.length > NAMED ? `${names} and ${operators.length - NAMED} more` : names;
}
