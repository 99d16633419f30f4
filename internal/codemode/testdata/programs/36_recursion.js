const flatten = x => Array.isArray(x) ? x.flatMap(flatten) : [x];
return [flatten([1, [2, [3, [4]]]]), [1, [2, [3]]].flat(), [1, [2, [3]]].flat(Infinity)];
