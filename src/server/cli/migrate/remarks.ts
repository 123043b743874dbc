/** A fact of a move that a person has to know, by its place in the source. */
export interface Remark {
  place: string;
  text: string;
}

/** Collects remarks for the report; a remark that is made twice stands there once. */
export function createRemarks() {
  const lost = new Map<string, Remark>();
  const look = new Map<string, Remark>();
  const add = (to: Map<string, Remark>, place: string, text: string): void => {
    to.set(`${place}\n${text}`, { place, text });
  };
  return {
    /** Something was not moved. */
    lost: (place: string, text: string) => add(lost, place, text),
    /** Something differs here. */
    look: (place: string, text: string) => add(look, place, text),
    get notMoved(): readonly Remark[] {
      return [...lost.values()];
    },
    get toLookAt(): readonly Remark[] {
      return [...look.values()];
    },
  };
}

export type Remarks = ReturnType<typeof createRemarks>;
