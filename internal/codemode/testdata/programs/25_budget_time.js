const {millisecondsLeft} = tools.budget();
return millisecondsLeft > 0 && millisecondsLeft <= 60000;
