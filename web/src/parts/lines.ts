/** Two texts line by line: what both have, what only the first has, what only the second. */

export interface Line {
  side: "both" | "a" | "b";
  text: string;
}

const MOST = 1500;

/** The shortest way from `a` to `b` in lines. Very long texts are not aligned: all of one, then all of the other. */
export function aligned(a: string, b: string): Line[] {
  const [mine, others] = [a.split("\n"), b.split("\n")];
  let [from, tail] = [0, 0];
  while (from < Math.min(mine.length, others.length) && mine[from] === others[from]) from++;
  while (tail < Math.min(mine.length, others.length) - from && mine[mine.length - 1 - tail] === others[others.length - 1 - tail]) tail++;
  const [left, right] = [mine.slice(from, mine.length - tail), others.slice(from, others.length - tail)];
  const both = (lines: string[]): Line[] => lines.map((text) => ({ side: "both", text }));
  const middle = left.length * right.length > MOST * MOST
    ? [...left.map((text): Line => ({ side: "a", text })), ...right.map((text): Line => ({ side: "b", text }))]
    : shortest(left, right);
  return [...both(mine.slice(0, from)), ...middle, ...both(mine.slice(mine.length - tail))];
}

function shortest(a: string[], b: string[]): Line[] {
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const found: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      found.push({ side: "both", text: a[i]! });
      i++;
      j++;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) found.push({ side: "a", text: a[i++]! });
    else found.push({ side: "b", text: b[j++]! });
  }
  return [...found, ...a.slice(i).map((text): Line => ({ side: "a", text })), ...b.slice(j).map((text): Line => ({ side: "b", text }))];
}
