MyType = "Scheduler"
Name = "submit.example.org"
Machine = "submit.example.org"
TotalRunningJobs = 3
TotalIdleJobs = 13
TotalHeldJobs = 1
TotalJobAds = 17
