const csv = 'name,age\nAda,36\nBo,41';
const [head, ...rows] = csv.split('\n').map(r => r.split(','));
return rows.map(r => Object.fromEntries(r.map((v, i) => [head[i], v])));
