/** Counts turns of the event loop until stopped. */
export function countTurns(): { readonly turn: number; stop(): void } {
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  return {
    get turn() {
      return turn;
    },
    stop() {
      isOver = true;
    },
  };
}
