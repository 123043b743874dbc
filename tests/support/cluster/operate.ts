import { platformCommand, testEnvironment } from "../platform.ts";
import type { TestCluster } from "./cluster.ts";

/** Runs a command of operators, `platform cluster …`, with the environment of the first node. */
export async function operate(
  cluster: TestCluster,
  ...args: string[]
): Promise<{ code: number; out: string; err: string }> {
  const [node] = cluster.nodes;
  if (node === undefined) throw new Error("the cluster has no node");
  const child = Bun.spawn([...platformCommand(), "cluster", ...args, "--config", node.configFile], {
    env: testEnvironment({ ...cluster.environment, NODE_URL: node.nodeUrl }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, out, err };
}
