MyType = "Submitter"
Name = "ada@example.org"
Machine = "submit.example.org"
ScheddName = "submit.example.org"
RunningJobs = 3
IdleJobs = 1
HeldJobs = 1
WeightedRunningJobs = 6

MyType = "Submitter"
Name = "physics.bob@example.org"
Machine = "submit.example.org"
ScheddName = "submit.example.org"
RunningJobs = 0
IdleJobs = 12
HeldJobs = 0
WeightedRunningJobs = 0
