import type { AnswerGate } from "../../../kernel/answer-gate.ts";

/** Gates of the servers of this process that are nodes of a cluster: there is one at most, but in tests. */
const gates = new Set<AnswerGate>();

/** Holds all calls to other servers behind a gate, until the returned function is called. */
export function holdOutgoing(gate: AnswerGate): () => void {
  gates.add(gate);
  return () => void gates.delete(gate);
}

/** Waits until what was computed so far may leave this process; awaited before every call to another server. Errors: 503, it never may. */
export async function mayLeave(): Promise<void> {
  for (const gate of gates) await gate.wait();
}
