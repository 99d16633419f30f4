const line = '2024-05-06 ERROR disk full';
const {groups} = /(?<date>[\d-]+) (?<level>\w+) (?<text>.*)/.exec(line);
return {...groups};
