"""What users fill in."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any

from django import forms
from django.db.models import Count, F, Q

from apps.catalog.models import Network, Target
from apps.core.ids import digest
from apps.dashboard import humans, words
from apps.tuning import methods
from apps.tuning.services import MAX_DIMENSION
from workers.messages.methods import PRESETS
from workers.messages.spec import ALL, AUTO, LAYOUTS, MAX_TRIALS, Budget

DEFAULT_MINUTES = 10
LONGEST_MINUTES = 60 * 24 * 30
OPEN = Q(shapes={}, inspection__dynamic__0__isnull=False)
"""Of a network whose sizes have to be chosen first, as Network.dynamic."""

OFFERED = 100
"""Networks, the newest, beside the one that is asked for: the page of another leads to its form."""

GONE = "The network that was asked for is deleted, or cannot be tuned: look which other one is chosen here."
AWAY = "The target that was asked for cannot be tuned for now: look which other one is chosen here."


class OneNetwork(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Of a user's that can be tuned, with sizes that were chosen; those of one name are told apart by when they came and what
    they hold."""

    def of(self, user: Any, asked: Any) -> None:
        mine = Network.objects.filter(owner=user, state=Network.State.READY).exclude(OPEN)
        names = mine.order_by().values("name").annotate(same=Count("pk")).filter(same__gt=1)
        self.shared = set(names.values_list("name", flat=True))
        self.queryset = mine.defer("inspection").annotate(open_sizes=F("inspection__dynamic"))
        self._asked = asked
        self.choices = lambda: [(network.pk, self.label_from_instance(network)) for network in self.offered]

    @cached_property
    def offered(self) -> list[Any]:
        """Asked for once: what is told of sizes takes its room and time for each."""
        rows: Any = self.queryset
        newest = list(rows.values_list("pk", flat=True)[:OFFERED])
        with suppress(forms.ValidationError):
            newest += [asked.pk] if (asked := self.to_python(self._asked)) else []
        return list(rows.filter(pk__in=newest))

    def label_from_instance(self, network: Any) -> str:
        told = [str(network), humans.sizes(network.shapes, network.open_sizes)]
        if network.name in self.shared:
            told.append(f"of {humans.moment(network.created)}, {network.sha256[:8]}")
        return ", ".join(filter(None, told))


def _part(role: str) -> forms.ChoiceField:
    """One in place of the method's."""
    offered = [
        (one.name, f"{one.title} ({one.name})") for one in methods.PARTS[role] if one.name in methods.OFFERED[role]
    ]
    choices = [("", "as the method has it"), *offered]
    return forms.ChoiceField(choices=choices, required=False, label=methods.ROLES[role])


class NewRun(forms.Form):
    """Network x target x method x budget; one click is enough. Fields of `OFFERED` replace parts of the method."""

    network = OneNetwork(Network.objects.none(), empty_label=None, error_messages={"invalid_choice": GONE})
    target = forms.ModelChoiceField(Target.objects.none(), empty_label=None, error_messages={"invalid_choice": AWAY})
    method = forms.ChoiceField(choices=[(preset.name, preset.title) for preset in PRESETS.values()], initial="auto")
    scheduler, explorer, sampler = _part("scheduler"), _part("explorer"), _part("sampler")
    cost_model, evaluator = _part("cost_model"), _part("evaluator")
    minutes = forms.FloatField(
        required=False, min_value=0.1, max_value=LONGEST_MINUTES, initial=DEFAULT_MINUTES, label="Minutes"
    )
    trials = forms.IntegerField(required=False, min_value=1, max_value=MAX_TRIALS, label="Configurations")
    latency = forms.FloatField(
        required=False, min_value=0.000001, max_value=1e9, label="Target latency in ms, sum of operators"
    )
    gain = forms.FloatField(required=False, min_value=0.001, max_value=99, label="Expected gain under, in %")
    seed = forms.IntegerField(required=False, min_value=0, max_value=(1 << 63) - 1, initial=0)
    layout = forms.ChoiceField(choices=[(name, name) for name in LAYOUTS], initial=AUTO, required=False)
    operators = forms.ChoiceField(choices=list(words.OPERATORS.items()), initial=ALL, required=False)
    reuse = forms.BooleanField(required=False, initial=True)

    def __init__(self, user: Any, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        asked = (self.data if self.is_bound else self.initial).get("network")
        self.fields["network"].of(user, asked)  # type: ignore[attr-defined]
        self.fields["target"].queryset = Target.objects.filter(state=Target.State.READY)  # type: ignore[attr-defined]
        for name, field in self.fields.items():
            field.widget.attrs["id"] = f"id_{name}"
        for name in self.errors:
            if name in self.fields:
                self.fields[name].widget.attrs |= {"aria-invalid": "true", "aria-describedby": f"error_{name}"}

    @property
    def shown_sizes(self) -> str:
        """Of each network with open sizes those that its option shows, as a page sends them back."""
        networks = self.fields["network"].offered  # type: ignore[attr-defined]
        return " ".join(f"{network.pk}:{digest(network.shapes)}" for network in networks if network.open_sizes)

    def clean_network(self) -> Network:
        network: Network = self.cleaned_data["network"]
        shown = dict(one.split(":", 1) for one in self.data.get("sizes", "").split() if ":" in one)
        if shown.get(str(network.pk), now := digest(network.shapes)) != now:
            raise forms.ValidationError(
                f"{network}: its sizes were changed meanwhile; look again at what is chosen here."
            )
        return network

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        if not self.errors and not any(found.get(name) for name in ("minutes", "trials", "latency", "gain")):
            self.add_error(
                None, "A run needs a limit: minutes, configurations, a latency to reach or an expected gain."
            )
        if "method" in found and (misfit := methods.misfit(found["method"], self.parts())):
            self.add_error(None, f"These parts do not fit together: {misfit}.")
        return found

    def parts(self) -> dict[str, str]:
        """By role, those that replace the method's own."""
        chosen = {role: self.cleaned_data.get(role, "") for role in methods.OFFERED}
        return methods.replaced(self.cleaned_data["method"], chosen)

    def budget(self) -> Budget:
        minutes, latency, gain = (self.cleaned_data[name] for name in ("minutes", "latency", "gain"))
        return Budget(
            seconds=60.0 * minutes if minutes else None,
            trials=self.cleaned_data["trials"],
            target_latency=latency / 1e3 if latency else None,
            min_gain=gain / 100 if gain else None,
        )


class Sizes(forms.Form):
    """A number for every open dimension of a network; dimensions of one name are asked for once."""

    def __init__(self, network: Network, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._network = network
        for open_ in network.inspection.get("dynamic", ()):
            name = self._name(open_)
            if name in self.fields:
                self.fields[name].help_text += f", dimension {open_['axis']} of {open_['input']}"
                continue
            kept = network.shapes.get(open_["input"])
            likely = 1 if open_["axis"] == 0 else None
            self.fields[name] = forms.IntegerField(
                min_value=1,
                max_value=MAX_DIMENSION,
                initial=kept[open_["axis"]] if kept else likely,
                label=open_["symbol"] or f"{open_['input']}, dimension {open_['axis']}",
                help_text=f"dimension {open_['axis']} of {open_['input']}",
            )

    @staticmethod
    def _name(open_: dict[str, Any]) -> str:
        return f"symbol:{open_['symbol']}" if open_["symbol"] else f"{open_['input']}:{open_['axis']}"

    def shapes(self) -> dict[str, list[int]]:
        """Every input's sizes."""
        shapes = {port["name"]: list(port["shape"] or ()) for port in self._network.inspection["inputs"]}
        for open_ in self._network.inspection["dynamic"]:
            shapes[open_["input"]][open_["axis"]] = self.cleaned_data[self._name(open_)]
        return shapes
