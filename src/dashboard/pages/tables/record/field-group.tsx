import { Input } from "@mantine/core";
import type { ReactNode } from "react";

export interface FieldGroupProps {
  label: string;
  error: ReactNode;
  withAsterisk: boolean;
}

/** Lays out a field that has several inputs: the label names the group, and each input names itself. */
export const FieldGroup = ({ label, error, withAsterisk, children }: FieldGroupProps & { children: ReactNode }) => (
  <Input.Wrapper
    role="group"
    aria-label={label}
    label={label}
    labelElement="div"
    error={error}
    withAsterisk={withAsterisk}
    styles={{ label: { overflowWrap: "anywhere" } }}
  >
    {children}
  </Input.Wrapper>
);
