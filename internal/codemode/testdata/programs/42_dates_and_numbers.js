return [new Date(Date.UTC(2024, 0, 31)).toISOString(), (1234.5).toFixed(2), parseInt('ff', 16), 0.1 + 0.2 > 0.3];
