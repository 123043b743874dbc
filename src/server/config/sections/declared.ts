import { type Static, Type } from "typebox";
import { VECTOR_DIMENSIONS_MAX } from "../limits.ts";
import { named, whole } from "../shape/schema.ts";

/** Key-value namespaces and SQL databases: a name, and no options. */
export const Declared = named(Type.Unsafe<Record<string, never>>(Type.Object({})));

const Metric = Type.Enum(["cosine", "euclidean", "dot-product"]);
export type VectorMetric = Static<typeof Metric>;

const VectorIndexShape = Type.Object({
  dimensions: whole({ min: 1, max: VECTOR_DIMENSIONS_MAX }),
  /** The distance metric; `cosine` by default. */
  metric: Type.Optional(Type.Unsafe<VectorMetric>(Metric)),
});
interface VectorIndex extends Static<typeof VectorIndexShape> {}

export const Vectorize = named(Type.Unsafe<VectorIndex>(VectorIndexShape));
