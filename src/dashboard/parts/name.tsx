import "./name.css";

/** Characters that change the direction of what follows, or are not seen. */
const UNSEEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name that strangers may have chosen: `gnp.exe` is not shown as `exe.png` by a character that turns it around. */
export const plainName = (name: string): string => name.replace(UNSEEN, "\ufffd");

/** The same, apart from the direction of what is around it. */
export const Name = ({ children, className }: { children: string; className?: string }) => (
  <bdi className={className} title={plainName(children)}>
    {plainName(children)}
  </bdi>
);
